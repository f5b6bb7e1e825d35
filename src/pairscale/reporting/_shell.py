"""What the reports share: the frame of the page, tables, packed texts, costs."""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
import re
import shlex
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from pairscale._version import __version__, __year__
from pairscale.judges.names import judged_by, no_grading
from pairscale.providers.catalog import price_note
from pairscale.reporting._interactive import drawn_twice, libraries
from pairscale.reporting.picture import number
from pairscale.reporting.svg import picture_css, svg

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import polars as pl

CITATION = (
    f"The pairscale authors ({__year__}). pairscale: pairwise judging of texts by language models and people (version "
    f"{__version__}) [computer program]."
)
"""How to cite the program."""

PREVIEW = 120
_LONGEST_WORDS = 4_000
_TAG = re.compile(r"<(\w+)>\s*SAMPLE_[12]\s*</\1>")  # the verdict itself, which the page says in words

Part = dict[str, Any]
"""A piece of content, by the names that the templates use."""


@dataclass(frozen=True, slots=True)
class Page:
    """A report, ready to be put into its frame.

    Attributes:
        template: the file in ``assets``.
        title: the default title.
        headline: what was found, in plain words.
        tiles: figures, and what they are.
        sections: anchors and names of its own parts, in their order, and whether they are there.
        content: what its template needs.
        method: paragraphs to be taken over.
        provenance: names and values.
        notices: what to be careful with.
        again: what to look at again: parts with ``name why entries``.
        nothing: what to say when there is nothing to look at again; empty if nothing was checked.
        verdicts: findings by name, where there are several.
        spending: see :func:`spent`.
        took: how long it took, in words.
        packed: texts and words, from :func:`pack`; empty without texts.
        labels: labels of people in the same run file: ``lead agreement columns rows``; None without any.
        can_label: whether what is in ``again`` can be written for people to label.
        judges: the names of those who judged.
    """

    template: str
    title: str
    headline: str
    tiles: Sequence[tuple[str, str]]
    sections: Sequence[tuple[str, str, object]]
    content: Part
    method: Sequence[str]
    provenance: Mapping[str, str]
    notices: Sequence[str] = ()
    again: Sequence[Part] = ()
    nothing: str = ""
    verdicts: Sequence[tuple[str, str]] = ()
    spending: Part | None = None
    took: str = ""
    packed: str = ""
    labels: Part | None = None
    can_label: bool = field(default=False, kw_only=True)
    judges: Sequence[str] = field(default=(), kw_only=True)


class Facts(Protocol):
    """What is known of a run or a result, of whichever kind."""

    def rows(self, *, texts: bool) -> pl.DataFrame:
        """What goes into a spreadsheet; without texts it holds nothing that was said of them."""
        ...

    def page(self, *, texts: bool) -> Page:
        """The report; without texts it holds neither them nor what was said of them."""
        ...

    def disguised(self) -> Facts:
        """The same under other names."""
        ...

    def write_again(self, path: Path) -> int:
        """Write what to look at again for people to label, and say how many cases there are."""
        ...


def render(
    page: Page,
    *,
    title: str | None = None,
    run: str | None = None,
    options: Mapping[str, Any] | None = None,
    texts: bool = True,
    interactive: bool = False,
) -> str:
    """The page as HTML.

    Args:
        page: its content.
        title: what was asked.
        run: the run file that it comes from, for the lines that make it again; None where it must not be named.
        options: of the command, by which the file was read; those that are None were not given.
        texts: whether the texts are in it.
        interactive: whether altair draws the charts as well.
    """
    from jinja2 import Environment, FunctionLoader, StrictUndefined
    from markupsafe import Markup

    css, scripts = _asset("report.css") + picture_css(), [_asset("report.js")]
    if interactive:
        css += _asset("interactive.css")
        scripts += [libraries(), _asset("interactive.js")]
    source = "" if run is None else f"{shlex.quote(Path(run).name)}{_as_options(options or {})}"
    shape = _as_options({"title": title}) + " --without-texts" * (not texts) + " --interactive" * interactive
    ends = (
        ("labels", "Labels", page.labels),
        ("cost", "Cost", page.spending or page.took),
        ("again", "Look again", page.again or page.nothing or page.notices),
        ("method", "Method", True),
    )
    content = page.content | {
        "title": title or page.title,
        "headline": page.headline,
        "judged_by": judged_by(page.judges),
        "banner": no_grading(page.judges),
        "verdicts": page.verdicts,
        "tiles": page.tiles,
        "sections": [(anchor, shown) for anchor, shown, there in (*page.sections, *ends) if there],
        "packed": Markup(page.packed),  # noqa: S704 - base64
        "labels": page.labels,
        "spending": page.spending,
        "took": page.took,
        "again": page.again,
        "nothing": page.nothing,
        "notices": page.notices,
        "method": page.method,
        "provenance": list(page.provenance.items()),
        "again_line": f"pairscale report {source}{shape}" if source else "",
        "label_lines": _label_lines(source) if source and page.can_label else "",
        "cite": CITATION,
        "made": f"pairscale {__version__}",
        "css": Markup(css),  # noqa: S704 - our own file
        "scripts": [Markup(script) for script in scripts],  # noqa: S704 - our own, and what altair draws with
        "css_hash": _hash(css),
        "script_hashes": [_hash(script) for script in scripts],
    }
    environment = Environment(
        loader=FunctionLoader(_asset), autoescape=True, undefined=StrictUndefined, trim_blocks=True
    )
    environment.filters["drawn"] = drawn_twice if interactive else svg
    return environment.get_template(page.template).render(content).lstrip()


def _as_options(given: Mapping[str, Any]) -> str:
    """Options as the shell takes them, each with a blank before it; of a file its name, as its folder may differ."""
    said = ""
    for name, value in given.items():
        if value is not None:
            word = Path(value).name if name in _FILES else str(value)
            said += f" --{name.replace('_', '-')} {shlex.quote(word)}"
    return said


_FILES = ("samples", "key")


def _label_lines(source: str) -> str:
    return f"pairscale report {source} --again again.jsonl\npairscale label again.jsonl"


def _asset(name: str) -> str:
    return (files("pairscale.reporting") / "assets" / name).read_text("utf-8")


def _hash(text: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"


# Tables


def cell(value: Any, *, kind: str | None = None, shown: str | None = None, two: str = "") -> Part:
    """A cell of the table that can be searched and sorted.

    Args:
        value: what it is sorted by.
        kind: the class; that of numbers or none by its value when None.
        shown: how it is written.
        two: what is opened for reading when it is clicked on.
    """
    numeric = isinstance(value, int | float)
    text = shown if shown is not None else number(value) if isinstance(value, float) else _text(value)
    # As JavaScript reads it: without commas, and infinite in its own word.
    sorted_by = f"{value:.6g}".replace("inf", "Infinity") if isinstance(value, float) else str(value)
    by = sorted_by if numeric and sorted_by != text else None
    return {"shown": text, "kind": kind if kind is not None else "n" * numeric, "value": by, "two": two}


def table_of(columns: Sequence[tuple[str, bool]], rows: Sequence[Sequence[Any]]) -> Part:
    """A small table: names of columns and whether they hold numbers, and the rows as they are shown."""
    return {"columns": columns, "rows": [[_text(value) for value in row] for row in rows]}


def _text(value: Any) -> str:
    return "" if value is None else f"{value:,}" if isinstance(value, int) else str(value)


def preview(text: str) -> str:
    """The beginning of a text on one line."""
    return " ".join(text[:PREVIEW].split())


def listed_first(entries: Sequence[Part], most: int) -> list[Part]:
    """The first entries of a list, and how many there are more."""
    more = len(entries) - most
    return [*entries[:most], *([{"text": f"… {more:,} more", "two": ""}] if more > 0 else [])]


def dated(spending: pl.DataFrame | None) -> str:
    """Of which dates the prices behind a spending are, in words."""
    return (
        ""
        if spending is None
        else price_note(row["prices_as_of"] for row in spending.iter_rows(named=True) if row["cost"])
    )


def spent(spending: pl.DataFrame | None, n: int, what: str) -> Part | None:
    """What it cost, by model, template and day; None where nothing was paid.

    Args:
        spending: see :meth:`RunFile.spending`.
        n: how many results there are for it.
        what: such as decided comparisons.
    """
    rows = [] if spending is None else [row for row in spending.iter_rows(named=True) if (row["cost"] or 0) > 0]
    if not rows:
        return None
    total = sum(row["cost"] for row in rows)
    each = f", ${1000 * total / n:,.2f} for a thousand {what}" if n else ""
    columns = {"model": "model", "template_id": "template", "day": "day (UTC)"}
    named = {name: words for name, words in columns.items() if any(row[name] is not None for row in rows)}
    shown = [
        (*(row[name] for name in named), row["attempts"], row["total_tokens"] or 0, f"{row['cost']:,.4f}")
        for row in rows
    ]
    lead = f"${total:,.4f} in all{each}{dated(spending)}."
    heads = [*((words, False) for words in named.values()), ("calls", True), ("tokens", True), ("US $", True)]
    return {"lead": lead, **table_of(heads, shown)}


# Texts


def pack(content: Mapping[str, Any]) -> str:
    """Texts and words, small: they are the bulk of a page."""
    raw = json.dumps(content, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")
    return base64.b64encode(gzip.compress(raw, mtime=0)).decode()


def packed_pairs(ids: Sequence[str], texts: Mapping[str, str], judgements: pl.DataFrame | None) -> str:
    """Texts and the judgements between them, to be read two by two.

    Args:
        ids: in the order in which they are listed.
        texts: by ID.
        judgements: ``ID1 ID2 better_id judge_id content thoughts``, one row per answer.
    """
    place = {name: at for at, name in enumerate(ids)}
    answers = []
    for row in () if judgements is None else judgements.iter_rows(named=True):
        if row["ID1"] in place and row["ID2"] in place:
            parts = (row["thoughts"], _TAG.sub("", row["content"] or "").strip())
            said = "\n\n".join(part for part in parts if part)[:_LONGEST_WORDS]
            winner = place.get(row["better_id"]) if row["better_id"] else None
            answers.append((place[row["ID1"]], place[row["ID2"]], winner, row["judge_id"], said))
    return pack({"ids": ids, "texts": [texts.get(name, "") for name in ids], "answers": answers})
