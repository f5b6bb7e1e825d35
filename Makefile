# One word a task. Every target sets up what it needs: a virtual environment in .venv with pinned versions.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
DEMO := $(VENV)/.runs
PIP := $(BIN)/python -m pip install --quiet --no-compile --disable-pip-version-check
NUTPIE := build/nutpie/.installed
MOCKS := build/mock-servers/.installed
INTEGRATIONS := build/integrations/.installed

PYTEST := OPENBLAS_NUM_THREADS=1 $(BIN)/python -m pytest --dist worksteal

.PHONY: demo test test-slow coverage validate validate-claims validate-goals nutpie mock-servers integrations traces postgres lint types docs bench clean constraints

$(STAMP): pyproject.toml constraints.txt
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(PIP) -c constraints.txt -e ".[dev]"
	@touch $@

$(DEMO): pyproject.toml constraints.txt
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@test $(STAMP) -nt pyproject.toml || { echo "installing pairscale ..."; $(PIP) -c constraints.txt -e .; }
	@touch $@

demo: $(DEMO)  ## rank the bundled texts with the embedded judge; no key, no network, none of the developers' tools
	@$(BIN)/pairscale demo

test: $(STAMP)  ## the tests to run after every change; one thread per process, and all processes share bytecode
	PYTHONDONTWRITEBYTECODE= $(PYTEST) -n 3

test-slow: $(STAMP)  ## the rest: calibration, parity, long fits and pages, browser, archives, kills, PostgreSQL
	PYTHONDONTWRITEBYTECODE= $(PYTEST) -n 3 -m 'slow and not validate'

coverage: $(STAMP)  ## both of them, with the lines and branches that they reach
	$(PYTEST) -n 2 -m 'not validate' --cov --cov-report=term

$(NUTPIE): pyproject.toml benchmarks/nutpie.txt
	@test -x $(@D)/bin/python || $(PYTHON) -m venv $(@D)
	$(@D)/bin/python -m pip install --quiet --disable-pip-version-check -r benchmarks/nutpie.txt -e .
	@touch $@

nutpie: $(NUTPIE)  ## our sampler beside another one, live
	OPENBLAS_NUM_THREADS=1 $(<D)/bin/python -m benchmarks.nutpie_parity
	OPENBLAS_NUM_THREADS=1 $(<D)/bin/python -m benchmarks.nutpie_logits

$(MOCKS): tests/providers/mock_servers/requirements.txt tests/providers/mock_servers/package.json
	@test -x $(@D)/python/bin/python || $(PYTHON) -m venv $(@D)/python
	$(@D)/python/bin/python -m pip install --quiet --disable-pip-version-check -r $(<D)/requirements.txt
	cp $(<D)/package.json $(@D)/package.json
	npm install --prefix $(@D) --silent --no-audit --no-fund
	@touch $@

mock-servers: $(MOCKS)  ## two servers of other authors that imitate providers, for `make validate`; needs Node.js 20

$(INTEGRATIONS): pyproject.toml tests/integrations/requirements.txt
	@test -x $(@D)/bin/python || $(PYTHON) -m venv $(@D)
	$(@D)/bin/python -m pip install --quiet --disable-pip-version-check -r tests/integrations/requirements.txt -e .
	@touch $@

integrations: $(STAMP) $(INTEGRATIONS)  ## pairscale inside inspect_ai and AG2, in an environment of their own
	$(BIN)/python -m pytest -m 'slow or not slow' tests/integrations

traces: $(STAMP)  ## write tests/data/traces again with the tools themselves; needs Node.js 20
	$(BIN)/python tools/make_traces.py

postgres: $(STAMP)  ## a PostgreSQL server from Debian's packages, until Ctrl-C: for `--run postgresql+psycopg://…`
	$(BIN)/python -m tools.postgres

validate: $(STAMP) nutpie mock-servers integrations  ## the long statistical, load and fault suites; figures go to docs/validation.md
	$(BIN)/python -m pytest -m validate -s
	$(PYTEST) -n 2 -m 'not validate' --hypothesis-profile thorough

validate-claims: $(STAMP)  ## what runs claim beside the truth, for judges and texts of many kinds; continues where it stopped
	OPENBLAS_NUM_THREADS=1 POLARS_MAX_THREADS=1 $(BIN)/python -m validation.claims
	OPENBLAS_NUM_THREADS=1 POLARS_MAX_THREADS=1 $(BIN)/python -m validation.screening
	OPENBLAS_NUM_THREADS=1 POLARS_MAX_THREADS=1 $(BIN)/python -m validation.stopping
	OPENBLAS_NUM_THREADS=1 POLARS_MAX_THREADS=1 $(BIN)/python -m validation.kinds_of_texts
	OPENBLAS_NUM_THREADS=1 POLARS_MAX_THREADS=1 $(BIN)/python -m validation.model_checks
	OPENBLAS_NUM_THREADS=1 $(BIN)/python -m pytest -m validate -s tests/models/test_reliability.py

validate-goals: $(STAMP)  ## what goals, criteria and columns known beforehand save; runs again where it stopped
	OPENBLAS_NUM_THREADS=1 $(BIN)/python -m validation.goals

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/codespell

types: $(STAMP)
	$(BIN)/mypy

docs: $(STAMP)  ## the guides as a site in build/site
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet

bench: $(STAMP)  ## speed and scale, as tables; JSON in build/benchmarks
	$(BIN)/python -m benchmarks

constraints: $(STAMP)  ## pin the versions that are installed now
	$(BIN)/python -m pip freeze --exclude-editable | grep -v ' @ ' > constraints.txt

clean:
	rm -rf $(VENV) build dist .coverage .mypy_cache .pytest_cache .ruff_cache .hypothesis
