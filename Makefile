# One word a task. Every target sets up what it needs: a virtual environment in .venv with pinned versions.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
NUTPIE := build/nutpie/.installed

.PHONY: demo test coverage validate nutpie lint types docs bench clean constraints

$(STAMP): pyproject.toml constraints.txt
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --no-compile --disable-pip-version-check -c constraints.txt -e ".[dev]"
	@touch $@

demo: $(STAMP)  ## rank the bundled texts with the embedded judge; no key, no network
	@$(BIN)/pairscale demo

test: $(STAMP)  ## the test suite; one thread a process, as several run beside each other; hundreds of them share bytecode
	PYTHONDONTWRITEBYTECODE= OPENBLAS_NUM_THREADS=1 $(BIN)/python -m pytest -n 3

coverage: $(STAMP)  ## the same, with the lines and branches that it reaches
	OPENBLAS_NUM_THREADS=1 $(BIN)/python -m pytest -n 2 --cov --cov-report=term

$(NUTPIE): pyproject.toml benchmarks/nutpie.txt
	@test -x $(@D)/bin/python || $(PYTHON) -m venv $(@D)
	$(@D)/bin/python -m pip install --quiet --disable-pip-version-check -r benchmarks/nutpie.txt -e .
	@touch $@

nutpie: $(NUTPIE)  ## our sampler beside another one, live
	OPENBLAS_NUM_THREADS=1 $(<D)/bin/python -m benchmarks.nutpie_parity

validate: $(STAMP) nutpie  ## the long statistical, load and fault suites; figures go to docs/validation.md
	$(BIN)/python -m pytest -m validate -s
	OPENBLAS_NUM_THREADS=1 $(BIN)/python -m pytest -n 2 --hypothesis-profile thorough

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

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
