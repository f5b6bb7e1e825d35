"""Writes docs/reference.md and docs/reference-r.md from the public names: ``python docs/_reference.py``.

A test says when they are out of date. What each name does comes from its docstring when the site is built.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path

import pairscale as ps

DOCS = Path(__file__).parent
STUB = Path(ps.__file__).with_name("__init__.pyi")

_VERBS = (
    "rank", "judge", "compare", "fit", "ab", "gate", "check_judge", "bias", "agreement", "cost", "plan", "simulate",
    "label", "status", "report", "audit", "export", "import_run", "open_run",
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
    more = [_HEAD.format(title="The R manual's names", lead=_LEAD_R)]
    more += _entries(by_package["r"])
    return {"reference.md": "\n".join(main), "reference-r.md": "\n".join(more)}


_LEAD = "The names that scripts may rely on are on this page; [the R manual's names](reference-r.md) have their own."
_LEAD_R = (
    "These functions have the names, arguments and defaults of the R package's manual. Import them from the top.\n"
    "[Coming from R](from-r.md) maps every entry of the manual."
)


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
