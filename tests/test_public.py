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
AdaptiveConfig AdaptiveResult AdaptiveState BTLConfig adaptive_get_logs adaptive_item_log adaptive_rank
adaptive_rank_resume adaptive_rank_run_live adaptive_rank_start adaptive_results_history adaptive_round_log
adaptive_step_log AuditReport audit load_adaptive_session save_adaptive_session summarize_adaptive validate_session_dir
Calibration JudgeCard JudgeCheck check_calibration check_judge read_judge_card
LLMJudge check_injection check_llm_api_keys ensure_only_ollama_model_loaded llm_compare_pair make_adaptive_judge_llm
submit_llm_pairs submit_openai_pairs_live submit_anthropic_pairs_live submit_gemini_pairs_live
submit_together_pairs_live submit_ollama_pairs_live openai_compare_pair_live anthropic_compare_pair_live
gemini_compare_pair_live together_compare_pair_live ollama_compare_pair_live
Agreement BTFit BayesFit Condition EloFit FunctionJudge HumanJudge Judge JudgePair LexicalJudge Outcome PairSummary
PairscaleError PositionalBias ReplayJudge ReverseConsistency SimulatedJudge StoreMismatchError SubmitResult
TemplateStudy Trait Verdict
__version__ agreement alternate_pair_order build_bt_data build_btl_results_data build_elo_data build_prompt
check_positional_bias compute_reverse_consistency eap_reliability errors example_openai_batch_output
example_writing_pairs example_writing_results example_writing_samples example_writing_samples1000 export
fit fit_bayes_btl_mcmc fit_bt_model fit_elo_model fit_statistics get_prompt_template import_run list_prompt_templates
list_traits make_judge make_pairs open_run published_default_template published_template_study randomize_pair_order
SamplesReport inspect_samples read_samples read_samples_df read_samples_dir register_prompt_template
remove_prompt_template sample_pairs
sample_reverse_pairs read_results scale_separation_reliability set_prompt_template submit_pairs
submit_pairs_async summarize_bt_fit summarize_items summarize_pairs summarize_refits synthetic_essays template_study
trait_description
ComparisonPlan SimulationStudy plan rank simulate
CostEstimate estimate_llm_pairs_cost
WinRate ab batch bias compare cost gate GateCriterion GateResult judge label Labelling report status RunStatus
register_provider
BatchManager BatchResult MultiBatch MultiBatchResult anthropic_create_batch anthropic_download_batch_results
anthropic_get_batch anthropic_poll_batch_until_complete build_anthropic_batch_requests build_gemini_batch_requests
build_openai_batch_requests gemini_create_batch gemini_download_batch_results gemini_get_batch
gemini_poll_batch_until_complete llm_download_batch_results llm_resume_multi_batches llm_submit_pairs_batch
llm_submit_pairs_multi_batch openai_create_batch openai_download_batch_output openai_get_batch
openai_poll_batch_until_complete openai_upload_batch_file parse_anthropic_batch_output parse_gemini_batch_output
parse_openai_batch_output run_anthropic_batch_pipeline run_gemini_batch_pipeline run_openai_batch_pipeline
write_openai_batch_file
CaseChange DirectoryTraceSource ExportedCases InMemoryTraceSource Labels ModelVariant PairwiseAgreement PairwiseCase
PairwiseComparator PairwiseOutcome PairwiseRunResult RunDiff RunTraceSource Suite Task Trace TraceRef TraceSource
Unmatched VariantsResult evaluate_pairwise evaluate_pairwise_async export_pairwise_cases export_pairwise_cases_async
human_labels human_pairwise pairwise_judge pairwise_panel read_labels read_outputs read_suite run_pairwise
run_pairwise_async run_variants run_variants_async save_trace
""".split()

# Lowest first: a module imports only from its own layer's package and from the layers before it.
LAYERS = (
    "_version", "core", "datasets", "pairing", "store", "providers", "judges", "runtime", "collect", "batch", "models",
    "checks", "adaptive", "auditing", "evaluate", "simulation", "reporting", "people", "testing", "integrations",
    "r", "ag2", "results", "cli",
    "__main__",
)  # fmt: skip


CORE = (
    "addresses", "arrays", "timelimit", "errors", "options", "failures", "notices", "home",
    "provenance", "notebooks", "display", "tables", "jobs", "columns",
    "results", "counting", "encodings", "documents", "texts", "workbooks", "formulas", "files",
    "samples", "traits", "prompts", "comparisons", "__init__",
)  # fmt: skip


def test_public_names_are_pinned_and_exist():
    assert sorted(ps.__all__) == sorted(PUBLIC)
    assert [name for name in PUBLIC if not hasattr(ps, name)] == []
    assert set(PUBLIC) <= set(dir(ps))


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


@pytest.mark.parametrize(
    ("line", "seen"),
    [
        ("from pairscale.models._sirt import fit", 1),
        ("import pairscale.models._sirt", 1),
        ("from pairscale.models import _sirt, bayes", 1),
        ("from pairscale.adaptive.rank import _ranked", 1),
        ("from pairscale.adaptive.selection.pollitt import quotas", 0),
        ("from pairscale._version import __version__", 0),
    ],
)
def test_a_private_import_is_seen(line, seen):
    assert len(private_imports(SRC / "adaptive" / "gates.py", line)) == seen


def test_inside_core_too():
    found = {
        path.stem: set(re.findall(r"pairscale\.core\.(\w+) import", path.read_text("utf-8"))) for path in CORE_FILES
    }
    inner = [path.read_text("utf-8") for path in sorted((SRC / "core" / "documents").glob("*.py"))]
    found["documents"] = {name for text in inner for name in re.findall(r"pairscale\.core\.(\w+)", text)}
    assert found["documents"] == {"documents"}
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
ab agreement audit bias check_judge compare cost export fit gate import_run judge label plan rank report simulate
status
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
