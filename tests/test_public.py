"""The public promise: names, layers, sizes, and what an import costs."""

import ast
import pkgutil
import re
import subprocess
import sys
from pathlib import Path

import pytest

import pairscale as ps

SRC = Path(ps.__file__).parent
CORE_FILES = sorted((SRC / "core").glob("*.py"))

PUBLIC = """
__version__ ab AdaptiveConfig agreement audit batch best bias BTLConfig check_judge compare Condition cost errors
example_writing_results example_writing_samples export fit fit_statistics FunctionJudge gate get_prompt_template grade
HumanJudge import_run inspect_samples judge Judge JudgePair label list_prompt_templates list_traits
LLMJudge make_judge make_pairs open_run Outcome PairscaleError plan randomize_pair_order rank read_results
read_samples register_prompt_template register_provider report rerank sample_pairs sample_reverse_pairs simulate
SimulatedJudge status submit_pairs summarize_pairs synthetic_essays template_study Trait trait_description
trust Verdict
""".split()

# Lowest first: a module imports only from its own layer's package and from the layers before it.
LAYERS = (
    "_version", "core", "datasets", "pairing", "store", "providers", "judges", "runtime", "collect", "batch", "models",
    "checks", "validity", "grading", "adaptive", "auditing", "evaluate", "contest", "simulation", "reporting", "people",
    "testing",
    "integrations", "r", "ag2", "results", "cli",
    "__main__",
)  # fmt: skip


CORE = (
    "arrays", "timelimit", "errors", "options", "failures", "notices", "home",
    "provenance", "notebooks", "display", "tables", "jobs", "columns",
    "results", "counting", "encodings", "documents", "texts", "workbooks", "formulas", "files",
    "samples", "traits", "prompts", "comparisons", "__init__",
)  # fmt: skip


def test_public_names_are_pinned_and_exist():
    assert sorted(ps.__all__) == sorted(PUBLIC)
    assert len(PUBLIC) <= 60
    assert [name for name in PUBLIC if not hasattr(ps, name)] == []
    assert set(PUBLIC) <= set(dir(ps))


def test_all_other_names_are_reached_by_attribute():
    further = "StoreMismatchError check_calibration check_injection published_template_study read_labels read_outputs"
    names = [*further.split(), *ps.r.__all__, *ps.results.__all__, *ps.ag2.__all__]
    assert [name for name in names if not hasattr(ps, name)] == []
    with pytest.raises(AttributeError, match="has no attribute 'nonesuch'"):
        ps.nonesuch  # noqa: B018


def test_import_of_the_package_loads_nothing_heavy():
    heavy = {"polars", "numpy", "scipy", "sqlalchemy"}
    code = f"import sys, pairscale, pairscale.cli; print(sorted({heavy} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize(
    "arguments", [["--help"], ["rank", "--help"], ["batch", "--help"], ["rank", "-h"], ["--version"]]
)
def test_the_help_of_a_command_imports_nothing_heavy_and_no_other_command(arguments):
    code = f"""
import sys
from pairscale.cli import main
try:
    main({arguments})
except SystemExit as done:
    assert not done.code, done.code
heavy = "aiohttp altair fastapi jinja2 numpy pandas polars pydantic rich scipy sqlalchemy".split()
print(sorted(set(heavy) & set(sys.modules)))
print(sorted(n.rpartition(".")[2] for n in sys.modules if n.startswith("pairscale.cli.") and "_" not in n))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=600)
    *_, heavy, commands = done.stdout.splitlines()
    assert heavy == "[]"
    assert commands == str([arguments[0]] if arguments[0] == "rank" else [])


_NEVER = (
    "aiohttp altair fastapi pandas pydantic scipy.linalg scipy.optimize scipy.sparse scipy.special scipy.stats "
    "sqlalchemy.dialects.postgresql"
)


@pytest.mark.parametrize(
    ("arguments", "never"),
    [
        (["status", "run.db"], f"{_NEVER} jinja2 numpy scipy pairscale.models pairscale.runtime pairscale.judges.llm"),
        (
            ["fit", "results.csv", "--out", "scores.csv"],
            f"{_NEVER} jinja2 sqlalchemy pairscale.judges pairscale.store.runfile",
        ),
        (
            ["report", "run.db", "--out", "page.html"],
            f"{_NEVER} pairscale.evaluate pairscale.judges.llm pairscale.runtime",
        ),
    ],
)
def test_a_command_imports_nothing_heavy_that_it_does_not_need(arguments, never, tmp_path):
    """What it costs to start a command is mostly what it imports."""
    texts = [{"ID": f"t{at}", "text": "rain " * (at + 3)} for at in range(5)]
    done = ps.submit_pairs(ps.make_pairs(texts), "lexical", run=tmp_path / "run.db", progress=False)
    done.results.write_csv(tmp_path / "results.csv")
    code = f"""
import sys
from pairscale.cli import main
try:
    main({arguments})
except SystemExit as done:
    assert not done.code, done.code
print("imported:", sorted(set({never.split()}) & set(sys.modules)))
"""
    shown = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=600, cwd=tmp_path
    )
    assert shown.stdout.splitlines()[-1] == "imported: []"


def modules() -> list[Path]:
    return sorted(path for path in SRC.rglob("*.py"))


def layer(path: Path) -> str:
    return path.relative_to(SRC).parts[0].removesuffix(".py")


def test_every_module_has_its_layer():
    assert {layer(path) for path in modules()} - {"__init__"} == set(LAYERS)


def test_imports_only_point_down():
    upwards = []
    for path in modules():
        own = layer(path)
        if own == "__init__":
            continue
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            names = [node.module] if isinstance(node, ast.ImportFrom) else []
            names += [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            for name in filter(None, names):
                match = re.match(r"pairscale(?:\.(\w+))?", name)
                if match is None:
                    continue
                target = match.group(1)
                if target is None:  # `import pairscale as ps`: the whole public surface, for the command alone
                    if own != "cli":
                        upwards.append(f"{path.name}: {name}")
                elif LAYERS.index(target) > LAYERS.index(own):
                    upwards.append(f"{path.name}: {name}")
    assert upwards == []


def private_imports(path: Path, text: str) -> list[str]:
    """The imports of a module that begin with an underscore, or lie in such a module, of another package."""
    own, found = ("pairscale", *path.relative_to(SRC).with_suffix("").parts), []
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.ImportFrom):
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        else:
            continue
        for name in names:
            parts = name.split(".")
            private = [at for at, part in enumerate(parts) if part.startswith("_") and not part.startswith("__")]
            home = tuple(parts[: private[0]]) if private else ()
            if parts[0] == "pairscale" and own[: len(home)] != home:
                found.append(f"{path.relative_to(SRC)}: {name}")
    return found


def test_what_begins_with_an_underscore_is_used_in_its_own_package_alone():
    assert [name for path in modules() for name in private_imports(path, path.read_text("utf-8"))] == []


def test_inside_core_too():
    found = {
        path.stem: set(re.findall(r"pairscale\.core\.(\w+) import", path.read_text("utf-8"))) for path in CORE_FILES
    }
    inner = [path.read_text("utf-8") for path in sorted((SRC / "core" / "documents").glob("*.py"))]
    found["documents"] = {name for text in inner for name in re.findall(r"pairscale\.core\.(\w+)", text)}
    assert found["documents"] == {"documents", "encodings", "errors"}
    for path in CORE_FILES:
        found[path.stem] |= set(re.findall(r"pairscale\.core\.(documents)\.\w+ import", path.read_text("utf-8")))
    assert set(found) == set(CORE)
    assert [(own, name) for own, names in found.items() for name in names if CORE.index(name) > CORE.index(own)] == []


def test_no_module_is_longer_than_one_sitting():
    lengths = {str(path.relative_to(SRC)): len(path.read_text("utf-8").splitlines()) for path in modules()}
    assert {name: n for name, n in lengths.items() if n > 800} == {}


def test_no_function_is_longer_than_a_screen():
    """70 lines without its signature, which is long where a verb has many options, and its docstring."""
    longest = {}
    for path in modules():
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                described = bool(ast.get_docstring(node))
                body = node.body[described:]
                name = f"{path.name}: {node.name}"
                longest[name] = node.end_lineno - body[0].lineno + 1 if body else 0
    assert {name: n for name, n in longest.items() if n > 70} == {}


def test_no_class_name_stands_twice():
    where = {}
    for path in modules():
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.ClassDef):
                where.setdefault(node.name, []).append(str(path.relative_to(SRC)))
    assert {name: found for name, found in where.items() if len(found) > 1} == {}


def test_the_exception_tree_in_the_docstring_is_the_real_one():
    drawn = {}
    parents = {0: None}
    for line in ps.errors.__doc__.splitlines():
        match = re.match(r"^    ([│├└─ ]*)(\w+Error)\b", line)
        if match:
            depth = len(match.group(1)) // 4
            drawn[match.group(2)] = parents.get(depth)
            parents[depth + 1] = match.group(2)
    named = {name: getattr(ps.errors, name) for name in ps.errors.__all__}
    real = {name: value for name, value in named.items() if isinstance(value, type)}
    assert set(drawn) == set(real)
    for name, parent in drawn.items():
        assert parent is None or real[parent] in real[name].__bases__


VERBS = """
ab agreement audit best bias check_judge compare cost export fit gate import_run judge label plan rank report rerank
simulate status
""".split()
BATCH = "submit status collect resume cancel".split()


def test_no_module_hides_a_verb():
    names = [found.name for found in pkgutil.walk_packages(ps.__path__, "pairscale.")]
    assert {"pairscale.adaptive.rank", "pairscale.cli.rank", "pairscale.collect.batch", "pairscale.cli.fit"} <= set(
        names
    )
    code = f"""
import importlib, inspect
import pairscale as ps
for name in {names}:
    if name != "pairscale.__main__":
        importlib.import_module(name)
print([name for name in {VERBS} if not inspect.isfunction(getattr(ps, name))])
print([name for name in {BATCH} if not inspect.isfunction(getattr(ps.batch, name))], ps.batch.__name__)
texts = [dict(ID=name, text=name * 3) for name in "abc"]
judge = lambda A, B: dict(is_valid=True, Y=int(A["ID"] < B["ID"]))
out = ps.rank(texts, judge=judge, steps=6, fit="laplace", progress="none")
print(out.items["ID"].to_list())
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=600)
    assert done.stdout.splitlines() == ["[]", "[] pairscale.batch", "['a', 'b', 'c']"]
    assert set(VERBS) <= set(ps.__all__)
