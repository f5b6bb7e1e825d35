"""``label``: have people label pairs, with the option names and defaults of the command."""

from __future__ import annotations

import sys
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from pairscale.core.display import ReprMixin, printable
from pairscale.core.encodings import read_text
from pairscale.core.errors import InputError
from pairscale.core.files import TABLE_SUFFIXES
from pairscale.core.options import FilePath, checked, require_int
from pairscale.core.tables import Values
from pairscale.people.cases import Case, read_cases, to_rank
from pairscale.people.overview import Overview, label_table, overview
from pairscale.people.queue import LabelStore
from pairscale.people.serve import Address, require_page, serve_labels
from pairscale.people.terminal import label_in_terminal
from pairscale.runtime.sync import Terminated, leave_sigterm, terminable

if TYPE_CHECKING:
    import polars as pl

_WAKE_S = 0.5
_MOST_LABELLERS = 1000
_LAST_PORT = 65535


@dataclass(frozen=True, slots=True, repr=False)
class Labelling(ReprMixin, table="labels", columns=None):
    """The progress of labelling.

    Attributes:
        labels: one row per label or skip that was not taken back.
        overview: labellers and criteria, with warnings and agreement.
        run: the run file that keeps the labels.
        done: labels that count.
        wanted: labels when all is done.
        exit_code: 130 or 143 if Ctrl-C or SIGTERM has stopped the page, else 0.
    """

    labels: pl.DataFrame
    overview: Overview
    run: str
    done: int
    wanted: int
    exit_code: int = 0

    def __str__(self) -> str:
        return f"{self.done:,} of {self.wanted:,} labels, in {self.run}"


@checked
def label(
    source: FilePath,
    *,
    run: FilePath | None = None,
    labellers: str | int | Sequence[str] | None = None,
    labels_per_case: int | None = None,
    instructions: FilePath | None = None,
    criterion: str | None = None,
    ties: bool | None = None,
    plain: bool = False,
    host: str = "127.0.0.1",
    port: int = 8484,
    url: str | None = None,
    owner_token: str | None = None,
    terminal: bool = False,
    status: bool = False,
    seed: int | None = None,
    a_col: str | None = None,
    b_col: str | None = None,
    encoding: str | None = None,
) -> Labelling:
    """Have people label pairs, blinded, in the browser or in the terminal: which of the two is better?

    Each labeller gets a personal link, and the owner another one, with progress, agreement, warnings and downloads;
    the links are printed on standard error. A click is on the disk, in the run file, before the next page is shown.
    Ctrl-C stops the page, and the labels are returned; run the same call again to continue, with the same links.

    Args:
        source: A blinded manifest (``case_id task_id criterion task_input response_1 response_2``), a file of pairs, or
            a run file, whose pairs are labelled.
        run: The run file that keeps the labels; by default ``source`` if it is one, else a file beside it with the
            ending ``.db``.
        labellers: Names of the labellers (a list, or ``"ann,bob"``), or how many there are.
        labels_per_case: Labels that each case gets; by default 1 with one labeller and 2 with more.
        instructions: A Markdown file that labellers read first.
        criterion: What one text may be better in; for pairs, which name no criterion.
        ties: Whether a tie is allowed; by default as before, else yes.
        plain: Show texts as they are written, not as Markdown.
        host: Address to listen on; ``127.0.0.1`` is reached from this machine alone.
        port: Port of the page; 0 takes a free one.
        url: How people reach the page, such as ``https://labels.example.org``.
        owner_token: Token of the owner's page; by default a random one, which stays.
        terminal: Ask in the terminal, and serve nothing.
        status: Show how far labelling is, and serve nothing.
        seed: Seed of sides and orders; a random one by default.
        a_col: Of a file of pairs, the column of the first text, where it is not ``text1``.
        b_col: Of a file of pairs, the column of the second text, where it is not ``text2``.
        encoding: Encoding of a text file that is not UTF-8.

    Returns:
        A :class:`Labelling` with ``labels``, ``overview``, ``done`` and ``wanted``.

    Raises:
        InputError: If the cases or a setting cannot be used.
        MissingExtraError: If the packages of the page are not installed.
        StoreError: If the run file cannot be used, or holds labels of other cases.

    Example:
        >>> import io, sys
        >>> import pairscale as ps
        >>> _ = ps.make_pairs(ps.example_writing_samples).head(2).write_csv("pairs.csv")
        >>> typed, sys.stdin = sys.stdin, io.StringIO("1")  # what a person types
        >>> found = ps.label("pairs.csv", criterion="clarity", labellers="ann", terminal=True)
        >>> sys.stdin = typed
        >>> found.done, found.wanted
        (1, 2)
    """
    if terminal and status:
        raise InputError("give `terminal=` or `status=`, not both")
    if Path(source).is_dir():
        raise InputError(to_rank(source))
    cases = read_cases(source, criterion=criterion, a_col=a_col, b_col=b_col, encoding=encoding)
    names = labeller_names(labellers)
    kept = str(labels_file(source) if run is None else run)
    if terminal and len(names) > 1:
        raise InputError("only one person can label in a terminal; give one name to `labellers=`")
    settings = {"labels_per_case": labels_per_case, "ties": ties, "seed": seed, "owner_token": owner_token}
    if status:
        return _status(kept, cases, names, settings)
    address = Address(host, require_int(port, "port", least=0, most=_LAST_PORT), url)
    if not terminal:
        require_page()
    code = 0
    with terminable(), LabelStore(kept, cases, labellers=names, **settings) as store:  # type: ignore[arg-type]
        if terminal:
            label_in_terminal(store, names[0] if names else "terminal")
        else:
            code = _serve(store, address, read_instructions(instructions), plain)
        return _labelling(store, kept, code)


def _status(run: str, cases: Sequence[Case], names: Sequence[str], settings: Values) -> Labelling:
    """The progress; only reads, so that it works while another process labels."""
    if names or any(value is not None for value in settings.values()):
        raise InputError("`status=` changes nothing; leave out `labellers=` and the settings of labelling")
    if "://" not in run and not Path(run).exists():
        raise InputError(f"{run}: no labels yet; run it without `status=` to collect them")
    with LabelStore(run, cases, write=False) as store:
        return _labelling(store, run)


def _labelling(store: LabelStore, run: str, exit_code: int = 0) -> Labelling:
    """The labels and the progress, as :func:`label` returns them."""
    view = overview(store)
    return Labelling(label_table(store), view, run, view.labels, view.wanted, exit_code)


def _serve(store: LabelStore, address: Address, instructions: str, plain: bool) -> int:
    """Serve until Ctrl-C or SIGTERM; returns the exit code for it."""
    if not store.labellers():
        store.add_labeller("labeller-1")
    n_labellers = len(store.labellers())
    wanted = store.labels_per_case
    if n_labellers < wanted:
        _say(f"note: each case needs {wanted} labels by different people, and there are {n_labellers}; add labellers")
    with serve_labels(store, address=address, instructions=instructions, plain=plain) as site:
        _say(f"{len(store.cases):,} cases, {wanted} label{'s' * (wanted != 1)} each, kept in {store.name}")
        show_links({"owner": site.owner, **site.links})
        _say("send each labeller their link; Ctrl-C stops, and the same command continues")
        try:
            while True:  # in short waits: another thread may get the signal, and only a waking main thread sees it
                threading.Event().wait(_WAKE_S)
                store.run.require_there()
        except (KeyboardInterrupt, Terminated) as stop:
            leave_sigterm()
            _say("stopping")
            return 143 if isinstance(stop, Terminated) else 130


def labels_file(source: FilePath) -> str:
    """Where the labels go by default: those of a run file into it, and those of a table beside it: cases.db."""
    is_table = Path(source).suffix.lower() in TABLE_SUFFIXES
    return str(Path(source).with_suffix(".db")) if is_table else str(source)


def labeller_names(labellers: str | int | Sequence[str] | None) -> list[str]:
    """The names of labellers, from a list, a text with commas or a number.

    Raises:
        InputError: If there are none, too many, or two of the same name.
    """
    if labellers is None:
        return []
    if isinstance(labellers, str) and labellers.strip().isdecimal():
        labellers = int(labellers)
    if isinstance(labellers, int):
        if isinstance(labellers, bool) or not 1 <= labellers <= _MOST_LABELLERS:
            raise InputError(f"labellers {labellers}: give 1 to {_MOST_LABELLERS}, or names")
        return [f"labeller-{number}" for number in range(1, labellers + 1)]
    raw_names = labellers.split(",") if isinstance(labellers, str) else list(labellers)
    names = [" ".join(str(name).split()) for name in raw_names]
    if not all(names) or len(set(names)) < len(names):
        raise InputError(f"labellers {labellers!r} must be different names with commas between them, or a number")
    return names


def read_instructions(instructions: FilePath | None) -> str:
    """The text of the file that labellers read first; empty without one."""
    return "" if instructions is None else read_text(instructions)


def show_links(links: Mapping[str, str]) -> None:
    """Each labeller's link, for the person who sends them, on standard error."""
    width = max(len(name) for name in links)
    for name, link in links.items():
        _say(f"  {printable(name):{width}}  {link}")


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)  # noqa: T201 - for the person who runs it
