"""Writes docs/reference/ and docs/reference-r.md from the public names: ``python docs/_reference.py``.

A test says when they are out of date. What each name does comes from its docstring when the site is built.
"""

from __future__ import annotations

import inspect
import re
import textwrap
from collections.abc import Iterable
from pathlib import Path

import pairscale as ps

DOCS = Path(__file__).parent
GROUPS = {
    "Rank and mark": "rank trust grade fit fit_statistics report judge submit_pairs AdaptiveConfig BTLConfig",
    "Compare and gate": "ab gate best rerank compare",
    "People": "label agreement",
    "Judges and costs": "check_judge bias template_study cost",
    "Batches": " ".join(f"batch.{name}" for name in ps.batch.__all__),
    "Run files": "status audit export import_run open_run read_results",
    "Laboratory": "plan simulate",
    "Texts and pairs": "read_samples inspect_samples make_pairs sample_pairs sample_reverse_pairs randomize_pair_order "
    "summarize_pairs Trait trait_description list_traits get_prompt_template list_prompt_templates "
    "register_prompt_template example_writing_samples example_writing_results synthetic_essays",
    "Judges to build with": "make_judge Judge JudgePair Verdict Outcome Condition LLMJudge FunctionJudge HumanJudge "
    "SimulatedJudge register_provider",
    "Errors": "core.errors",
}
"""The pages with their names; a test compares them with what the package promises."""

_HEAD = """# {title}

<!-- Written by docs/_reference.py; run: python docs/_reference.py -->
"""
_LEAD = (
    "`import pairscale as ps`. Verbs are the same as the commands, with the same options and defaults. The names of\n"
    "R's manual, of AG2 and the classes of results have [a page of their own](../reference-r.md)."
)
_LEAD_R = (
    "Each of these names is imported from the module of its section, and is also reached as `ps.NAME`. Arguments and\n"
    "defaults are those of the R package's manual and of AG2; `help(ps.NAME)` explains them.\n"
    "A `FilePath` is a file or folder, as a text or a path; of a run, also the address of a database.\n"
    "[Coming from R](from-r.md) maps every entry of the manual."
)


def pages() -> dict[str, str]:
    """The pages by their file names."""
    written = {"reference/index.md": _overview(), "reference-r.md": _names_of_others()}
    for title, names in GROUPS.items():
        written[f"reference/{_file(title)}"] = "\n".join([_HEAD.format(title=title), *_entries(names.split())])
    return written


def _file(title: str) -> str:
    return title.lower().replace(" ", "-") + ".md"


def _overview() -> str:
    """A table of all names, a section a page."""
    lines = [_HEAD.format(title="Python reference"), _LEAD, ""]
    for title, names in GROUPS.items():
        lines += [f"## {title}", "", "| name | what it is |", "| --- | --- |"]
        for name in names.split():
            lines.append(f"| [`{name}`]({_file(title)}#pairscale.{name}) | {_first_sentence(_named(name))} |")
        lines.append("")
    return "\n".join(lines)


def _named(name: str) -> object:
    """What stands behind a name such as ``batch.submit``."""
    value: object = ps
    for part in name.split("."):
        value = getattr(value, part)
    return value


def _names_of_others() -> str:
    """R's, AG2's and the results' names, each with its signature and its first sentence."""
    lines = [_HEAD.format(title="Names of R, AG2 and results"), _LEAD_R, ""]
    for title, module in {"R's manual": ps.r, "AG2": ps.ag2, "Classes of results": ps.results}.items():
        lines += [f"## {title}", "", f"`from {module.__name__} import ...`", ""]
        for name in sorted(module.__all__):
            lines += _short_entry(name, getattr(module, name))
    return "\n".join(lines)


def _short_entry(name: str, value: object) -> list[str]:
    """A name with its signature and its first sentence."""
    lines = [f"### {name}", ""]
    if inspect.isfunction(value):
        shown = re.sub(r"'([^']*)'(?=[,)=]| =| ->|$)", r"\1", str(inspect.signature(value)))
        lines += ["```text", *textwrap.wrap(f"{name}{shown}", 116, subsequent_indent="    "), "```", ""]
    return [*lines, _first_sentence(value), ""]


def _first_sentence(value: object) -> str:
    if not callable(value) and not inspect.ismodule(value):
        return "A table of the package."
    sentence = (inspect.getdoc(value) or "").partition("\n\n")[0]
    return re.sub(r":\w+:`~?([\w.]+)`", r"`\1`", " ".join(sentence.split()))


def _entries(names: Iterable[str]) -> list[str]:
    lines = []
    for name in names:
        if name.startswith("example_"):
            lines += [f"## {name} {{ #pairscale.{name} }}", "", "A table of the package; see [Tables](../data.md).", ""]
        else:
            lines += [f"::: pairscale.{name}", ""]
    return lines


if __name__ == "__main__":
    for file, text in pages().items():
        (DOCS / file).parent.mkdir(exist_ok=True)
        (DOCS / file).write_text(text, "utf-8")
