"""What the reports of all kinds share: one HTML file that opens from the disk, needs no network, and prints well."""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
import re
import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from secrets import token_bytes
from typing import TYPE_CHECKING, Any, TypeVar

import polars as pl
from markupsafe import Markup

from pairscale._version import __version__, __year__
from pairscale.core.files import replacing
from pairscale.core.notices import plural
from pairscale.core.results import read_form
from pairscale.judges.base import judged_by, no_grading
from pairscale.providers.catalog import price_note
from pairscale.reporting.picture import calibration_picture, number, percent
from pairscale.reporting.svg import asset, picture_css, svg
from pairscale.store.labels import label_results

if TYPE_CHECKING:
    from pairscale.checks.calibration import Calibration
    from pairscale.reporting.picture import Content, Row
    from pairscale.store.runfile import RunFile

CITATION = (
    f"The pairscale authors ({__year__}). pairscale: pairwise judging of texts by language models and people (version "
    f"{__version__}) [computer program]."
)
"""How to cite the program."""

_PREVIEW = 120
_LONGEST_WORDS = 4_000
_LONGEST_CELL = 32_000  # characters; an Excel cell holds a few more
_TAG = re.compile(r"<(\w+)>\s*SAMPLE_[12]\s*</\1>")  # the verdict itself, which the page shows
_HEADING = re.compile(r'<h2 id="(\w+)">([^<]*)</h2>')
_PROSE = re.compile(r'<p class="(lead|method)">(.*?)</p>', re.DOTALL)
_NAV = '<nav aria-label="Sections"></nav>'
_FILES = ("samples", "key")
Table = TypeVar("Table", pl.DataFrame, pl.DataFrame | None)


@dataclass(frozen=True, slots=True)
class Report:
    """What is known of a run or a result, of whichever kind, before it is laid out.

    Attributes:
        template: the file in ``assets``, which holds the prose.
        title: if no other is given.
        table: what goes into a spreadsheet: one row per text, template, case, variant or measure.
        content: what the template uses.
        provenance: names and values.
        judges: the names of those who judged.
        notices: what to be careful with.
        spending: by model, template and day; None when it is not known.
        n_results: how many results were paid for.
        packed: texts and words to be read side by side; None without texts.
        answers: one row per answer, for a sheet of their own.
        write_again: writes what to look at again for people to label, and says how many cases that is; None where it
            cannot be written.
        labels: people's labels in the same run file; None without any.
        people: who judged, where people did.
    """

    template: str
    title: str
    table: pl.DataFrame
    content: Row
    provenance: Mapping[str, str]
    judges: Sequence[str]
    notices: Sequence[str] = ()
    spending: pl.DataFrame | None = None
    n_results: int = 0
    packed: Row | None = None
    answers: pl.DataFrame | None = None
    write_again: Callable[[Path], int] | None = None
    labels: Row | None = None
    people: Sequence[Row] = ()


# Pages and workbooks


def write_page(
    report: Report,
    path: Path,
    *,
    title: str | None = None,
    run: str | None = None,
    options: Row | None = None,
    interactive: bool = False,
) -> Path:
    """Write a report as HTML.

    Args:
        report: what it holds.
        path: where to write.
        title: what was asked.
        run: the run file that it comes from, for the lines that have people decide; None where it must not be named.
        options: of the command, by which the file was read; those that are None were not given.
        interactive: whether altair draws the charts as well.
    """
    css = asset("report.css") + picture_css()
    scripts = [asset("report.js")]
    if interactive:
        from pairscale.reporting.vega import libraries

        css += asset("interactive.css")
        scripts += [libraries(), asset("interactive.js")]
    source = ""
    if run is not None and Path(run).is_file():  # an address may hold a password
        source = f"{shlex.quote(Path(run).name)}{_as_options(options or {})}"
    page = _rendered(
        report,
        interactive=interactive,
        title=title or report.title,
        packed="" if report.packed is None else _packed(report.packed),
        source=source,
        css=css,
        scripts=scripts,
        hashes=[_hash(text) for text in (css, *scripts)],
    )
    links = "".join(f'<a href="#{anchor}">{name}</a>' for anchor, name in _HEADING.findall(page))
    with replacing(path) as temporary:
        temporary.write_text(page.replace(_NAV, _NAV.replace("></", f">{links}</"), 1), "utf-8", "replace")
    return path


def sheets_of(report: Report) -> dict[str, pl.DataFrame]:
    """The sheets of a workbook: what was found, the answers, and the method."""
    sheets = {report.template.partition(".")[0]: report.table}
    if report.answers is not None:
        sheets["comparisons"] = report.answers.with_columns(pl.col(pl.String).str.head(_LONGEST_CELL))
    page = _rendered(report)
    rows = [(name, Markup(text).striptags()) for name, text in _PROSE.findall(page)]  # noqa: S704 - nothing is shown
    rows += [*report.provenance.items(), *(("notice", text) for text in report.notices), ("to cite", CITATION)]
    sheets["method"] = pl.DataFrame(rows, schema={"what": pl.String(), "value": pl.String()}, orient="row")
    return sheets


def _rendered(report: Report, *, interactive: bool = False, **frame: Any) -> str:
    """The page; without a frame of its own, for its prose."""
    empty = {"title": report.title, "packed": "", "source": "", "css": "", "scripts": [], "hashes": [""]}
    template = _environment(interactive=interactive).get_template(report.template)
    text: str = template.render(_context(report) | empty | frame)
    return text.lstrip()


def _context(report: Report) -> Content:
    """What every template may use."""
    spending = () if report.spending is None else report.spending.iter_rows(named=True)
    paid = [row for row in spending if (row["cost"] or 0) > 0]
    return {
        "report": report,
        "judged_by": judged_by(report.judges),
        "banner": no_grading(report.judges),
        "paid": paid,
        "cost": sum(row["cost"] for row in paid),
        "prices": price_note(row["prices_as_of"] for row in paid),
        "cite": CITATION,
        "version": __version__,
        **report.content,
    }


def _environment(*, interactive: bool) -> Any:
    from jinja2 import Environment, FunctionLoader, StrictUndefined

    environment = Environment(
        loader=FunctionLoader(asset), autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    drawn: Callable[..., Any] = svg
    if interactive:
        from pairscale.reporting.vega import drawn_twice

        drawn = drawn_twice
    environment.filters |= {
        "drawn": drawn, "number": number, "percent": percent, "figure": _figure, "sortable": _sortable,
        "sentence": sentence, "counted": plural, "listing": _listing, "columns": _columns,
    }  # fmt: skip
    return environment


def _columns(names: Sequence[str], heads: Mapping[str, Sequence[Any]]) -> list[Sequence[Any]]:
    """Head, kind, and whether a phone leaves it out, of the columns of these names."""
    return [heads[name] for name in names]


def _figure(value: object) -> str:
    """A value as a table shows it."""
    if isinstance(value, float):
        return number(value).replace("inf", "∞")
    if isinstance(value, int):
        return f"{value:,}".replace("-", "−")
    return "" if value is None else str(value)


def _sortable(value: float) -> str:
    """A number as JavaScript reads it."""
    return f"{value:.6g}".replace("inf", "Infinity")


def sentence(text: str) -> str:
    """A finding as a sentence."""
    return f"{text[:1].upper()}{text[1:]}."


def _listing(names: Sequence[str]) -> str:
    return " and ".join([", ".join(names[:-1]), names[-1]]) if len(names) > 1 else names[0]


def _as_options(given: Row) -> str:
    """Options as the shell takes them, each with a blank before it; of a file its name, as its folder may differ."""
    said = ""
    for name, value in given.items():
        if value is not None:
            word = Path(value).name if name in _FILES else str(value)
            said += f" --{name.replace('_', '-')} {shlex.quote(word)}"
    return said


def _hash(text: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"


def _packed(content: Row) -> str:
    """Texts and words, small: they are the bulk of a page."""
    raw = json.dumps(content, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")
    return base64.b64encode(gzip.compress(raw, mtime=0)).decode()


# What the kinds share


def preview(text: str) -> str:
    """The beginning of a text on one line."""
    return " ".join(text[:_PREVIEW].split()) + "…" * (len(text) > _PREVIEW)


def texts_of(samples: pl.DataFrame | None) -> dict[str, str]:
    """The texts by their IDs, where they are known."""
    if samples is None or "text" not in samples.columns:
        return {}
    return dict(samples.select("ID", "text").iter_rows())


def pairs_to_read(ids: Sequence[str], texts: Mapping[str, str], judgements: pl.DataFrame | None) -> Content:
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
            words = "\n\n".join(part for part in parts if part)[:_LONGEST_WORDS]
            answers.append((place[row["ID1"]], place[row["ID2"]], place.get(row["better_id"]), row["judge_id"], words))
    return {"ids": ids, "texts": [texts.get(name, "") for name in ids], "answers": answers}


def pair_writer(pairs: Iterable[tuple[str, str]], texts: Mapping[str, str], criterion: str) -> Callable[[Path], int]:
    """Writes pairs of texts as cases for people to label, one JSON line each, as ``pairscale label`` takes them."""

    def write(path: Path) -> int:
        lines = []
        for one, two in dict.fromkeys((min(pair), max(pair)) for pair in pairs):
            name = f"{one}::{two}"
            case = {"case_id": name, "task_id": name, "criterion": criterion, "task_input": ""}
            case |= {"response_1": texts.get(one, ""), "response_2": texts.get(two, "")}
            lines.append(f"{json.dumps(case, ensure_ascii=False)}\n")
        with replacing(path) as temporary:
            temporary.write_text("".join(lines), "utf-8")
        return len(lines)

    return write


def calibration_parts(found: Iterable[tuple[str, Calibration]]) -> list[Content]:
    """A judge's probabilities held against people, or against its own reversed answers: a section each.

    Args:
        found: who states the probabilities (empty where there is only one), and how right they are.
    """
    up = {
        "people": "share in which people choose the first text",
        "reversed": "share in which the reversed answer chooses that text",
    }
    label = "Stated probabilities against what was observed"
    across = "stated for the text shown first"
    return [
        {"who": who, "found": one, "chart": calibration_picture(one.bins.to_dicts(), label, across, up[one.against])}
        for who, one in found
    ]


def people_in(store: RunFile) -> pl.DataFrame | None:
    """What people said in a run file, as results; None where no one did."""
    labels = label_results(store)
    return read_form(labels).table if labels.height else None


def summed(spending: pl.DataFrame) -> pl.DataFrame:
    """What was paid, a row per model, template and day."""
    table = spending.group_by("model", "template_id", "day", maintain_order=True)
    return table.agg(pl.exclude("prices_as_of").sum(), pl.first("prices_as_of"))


def moment(at: object) -> str:
    """A time as it is shown."""
    return f"{str(at)[:16].replace('T', ' ')} UTC"


def origin_of(store: RunFile, *, pseudonyms: bool) -> dict[str, str]:
    """Who made a run file and when; and the last command with every setting that held, which may name files."""
    digest = store.closing() or "none yet: the run file is being written, or its process was killed"
    origin = {"run file made by": f"{store.get_meta('created_by')}, {moment(store.get_meta('created_at'))}"}
    origin["digest"] = digest
    for row in store.read_log("commands", last=1):
        origin["last command"] = f"pairscale {row['command']}, version {row['version']}, {moment(row['at'])}"
        if not pseudonyms:
            origin["settings"] = "; ".join(
                f"{name} = {', '.join(map(str, value)) if isinstance(value, list) else value}"
                for name, value in row["settings"].items()
                if value not in ([], "", None)
            )
    return origin


def other_names(names: Iterable[str], letter: str = "T") -> dict[str, str]:
    """T1, T2 and so on, in an order that says nothing: that of a hash that no one else can compute."""
    salt = token_bytes(16)
    order = sorted(set(names), key=lambda name: hashlib.sha256(salt + name.encode("utf-8", "replace")).digest())
    return {name: f"{letter}{place}" for place, name in enumerate(order, start=1)}


def renamed(table: Table, other: Mapping[str, str], *columns: str) -> Table:
    """A table, where there is one, whose columns hold the other names."""
    if table is None:
        return table
    return table.with_columns(pl.col(column).replace(dict(other)) for column in columns)
