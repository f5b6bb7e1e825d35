"""Writes docs/reference.md and docs/reference-r.md from the public names: ``python docs/_reference.py``.

A test says when they are out of date. What each name does comes from its docstring when the site is built.
"""

from __future__ import annotations

import inspect
import re
import textwrap
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path

import pairscale as ps

DOCS = Path(__file__).parent
STUB = Path(ps.__file__).with_name("__init__.pyi")

_VERBS = (
    "rank", "best", "rerank", "trust", "grade", "judge", "compare", "fit", "ab", "gate", "check_judge", "bias",
    "agreement", "cost", "plan", "simulate", "label", "status", "report", "audit", "export", "import_run", "open_run",
)  # fmt: skip
_GROUPS = {
    "core": "Samples, traits, prompts and comparisons",
    "pairing": "Pairs",
    "judges": "Judges",
    "collect": "Given pairs",
    "models": "Models",
    "adaptive": "Adaptive ranking",
    "checks": "Checks of judges",
    "evaluate": "Comparing two variants",
    "people": "People",
    "simulation": "Simulation and plans",
    "reporting": "Reports",
    "store": "Run files",
    "auditing": "The audit",
    "providers": "Providers",
    "datasets": "Example data",
}
_HEAD = """# {title}

<!-- Written by docs/_reference.py from src/pairscale/__init__.pyi; run: python docs/_reference.py -->

{lead}
"""


def names() -> dict[str, list[str]]:
    """The public names by their package, in the order of the stub; AG2's stand with those of ``evaluate``."""
    found = defaultdict(list)
    for module, name in re.findall(r"^from \.(\S*) import (\w+) as", STUB.read_text("utf-8"), re.MULTILINE):
        found["evaluate" if module == "ag2" else module.split(".")[0]].append(name)
    return found


def pages() -> dict[str, str]:
    """The pages by their file names."""
    by_package = names()
    main = [_HEAD.format(title="Python reference", lead="Import the package as `import pairscale as ps`. " + _LEAD)]
    main += ["## Verbs", "", "The same as the commands, with the same options and defaults.", "", *_entries(_VERBS)]
    main += ["## Batches", "", *_entries([f"batch.{name}" for name in ps.batch.__all__])]
    for package, title in _GROUPS.items():
        main += [f"## {title}", "", *_entries(name for name in by_package[package] if name not in _VERBS)]
    main += ["## Errors", "", "::: pairscale.core.errors", ""]
    more = [_HEAD.format(title="Names of R, AG2 and results", lead=_LEAD_R)]
    for title, module in {"R's manual": ps.r, "AG2": ps.ag2, "Classes of results": ps.results}.items():
        more += [f"## {title}", "", f"`from {module.__name__} import ...`", ""]
        more += [line for name in sorted(module.__all__) for line in _short_entry(name, getattr(module, name))]
    return {"reference.md": "\n".join(main), "reference-r.md": "\n".join(more)}


_LEAD = "The names to begin with are on this page; [those of R, AG2 and results](reference-r.md) have their own."
_LEAD_R = (
    "Each of these names is imported from the module of its section, and is also reached as `ps.NAME`. Arguments and\n"
    "defaults are those of the R package's manual and of AG2; `help(ps.NAME)` explains them.\n"
    "[Coming from R](from-r.md) maps every entry of the manual."
)


def _short_entry(name: str, value: object) -> list[str]:
    """A name with its signature and its first sentence."""
    lines = [f"### {name}", ""]
    if inspect.isfunction(value):
        shown = re.sub(r"'([^']*)'(?=[,)=]| =| ->|$)", r"\1", str(inspect.signature(value)))
        lines += ["```text", *textwrap.wrap(f"{name}{shown}", 116, subsequent_indent="    "), "```", ""]
    sentence = (inspect.getdoc(value) or "").partition("\n\n")[0] if callable(value) else "A table of the package."
    return [*lines, re.sub(r":\w+:`~?([\w.]+)`", r"`\1`", " ".join(sentence.split())), ""]


def _entries(chosen: Iterable[str]) -> list[str]:
    lines = []
    for name in chosen:
        if name.startswith("example_"):
            lines += [f"### {name}", "", "A table that comes with the package; see [Tables and columns](data.md).", ""]
        elif name != "errors":  # which has a section of its own
            lines += [f"::: pairscale.{name}", ""]
    return lines


if __name__ == "__main__":
    for file, text in pages().items():
        (DOCS / file).write_text(text, "utf-8")
