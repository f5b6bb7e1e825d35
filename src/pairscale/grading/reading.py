"""What ``grade`` is given beside the run: known texts, and where levels begin."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import polars as pl

from pairscale.core.errors import InputError
from pairscale.core.files import read_table
from pairscale.core.notices import notice, plural
from pairscale.core.options import FilePath, require_mapping, require_number
from pairscale.core.tables import Table, listed, require_columns, require_ids, to_frame
from pairscale.grading.marks import KnownMarks
from pairscale.store.reading import is_run
from pairscale.store.runfile import open_run
from pairscale.validity.judged import judged

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from pairscale.store.runfile import RunFile

_CLOSE_TO_ONE = 0.005  # shares are often rounded


def read_known(run: Any, known: Table | FilePath, ids: Sequence[str], estimates: Any, notices: list[str]) -> KnownMarks:
    """The known texts: a table with their marks, or last year's run file.

    Args:
        run: this year's.
        known: what was given.
        ids: the texts of the run.
        estimates: their scores.
        notices: what to be careful with; more is added.

    Raises:
        InputError: If marks are no numbers, are of texts that are not in the run, or do not rise with the scores.
    """
    place = {name: number for number, name in enumerate(ids)}
    if isinstance(known, str | os.PathLike) and is_run(known):
        marks = _of_last_run(run, known, place)
    else:
        marks = _of_table(known, place, notices)
    if len(marks.texts) < 2:
        raise InputError(
            f"marks are known of {plural(len(marks.texts), 'text')} of the run; a scale needs two, and five or more "
            "are worth much more",
            argument="known",
        )
    if marks.marks.std() == 0:
        raise InputError(f"all known marks are {marks.marks[0]:g}; they do not say what a better text gets", "known")
    correlation = np.corrcoef(estimates[marks.texts], marks.marks)[0, 1]
    if correlation <= 0:
        raise InputError(
            f"the known marks fall where the judge's scores rise (correlation {correlation:.2f}); if low marks are the "
            "good ones, give them reversed, such as 7 - mark",
            argument="known",
        )
    return marks


def _of_table(known: Any, place: Mapping[str, int], notices: list[str]) -> KnownMarks:
    """Marks by ``ID mark``, and ``sd`` where their errors are known."""
    table = read_table(known) if isinstance(known, str | os.PathLike) else to_frame(known, "known")
    table = require_ids(table, ["ID"], "known")
    require_columns(table, ["mark"], "known")
    unmarked = table["mark"].is_null()
    if unmarked.any():
        notices.append(notice(f"{plural(int(unmarked.sum()), 'text')} without a mark in `known=` left out"))
        table = table.filter(~unmarked)
    ids = table["ID"]
    if ids.is_duplicated().any():
        raise InputError(f"texts with more than one known mark: {listed(sorted(set(ids.filter(ids.is_duplicated()))))}")
    marks = _numbers(table, "mark", ids)
    sds = _numbers(table, "sd", ids) if "sd" in table.columns else np.zeros(len(ids))
    if (sds < 0).any():
        wrong = ids.filter(pl.Series(sds < 0)).to_list()
        raise InputError(f"the sd of a known mark is 0 or more; look at {listed(wrong)}", argument="known")
    strange = [name for name in ids if name not in place]
    if strange:
        raise InputError(
            f"known texts that are not in the run: {listed(strange)}; `pairscale rank FOLDER --add KNOWN --run RUN` "
            "joins them to it",
            argument="known",
        )
    return KnownMarks(np.array([place[name] for name in ids], dtype=np.int64), marks, np.diag(np.square(sds)))


def _numbers(table: pl.DataFrame, name: str, ids: pl.Series) -> Any:
    """A column as numbers, all of them finite."""
    values = table[name].cast(pl.Float64, strict=False)
    wrong = ~values.is_finite().fill_null(value=False)
    if wrong.any():
        raise InputError(f"the {name} of a known text must be a number; look at {listed(ids.filter(wrong).to_list())}")
    return values.to_numpy()


def _of_last_run(run: Any, last: FilePath, place: Mapping[str, int]) -> KnownMarks:
    """Last year's texts with their scores as marks, and the covariance of these."""
    with open_run(last) as store:
        then = _conditions(store)
    with _store_of(run) as store:
        now = _conditions(store)
    for name in ("judge_id", "trait", "template_id"):
        if then[name].to_list() != now[name].to_list():
            raise InputError(
                f"{last} has another {name.removesuffix('_id')}, {listed(then[name].to_list())}, than this run, "
                f"{listed(now[name].to_list())}; scores of the two are not on one scale",
                argument="known",
            )
    scale = judged(last, None).scale
    shared = [number for number, name in enumerate(scale.ids) if name in place]
    if not shared:
        raise InputError(
            f"no text of {last} is in the run; `pairscale rank FOLDER --add OLD_FOLDER --run RUN` joins them to it",
            argument="known",
        )
    # Marks are in the unit of last year's scale, which has no error; the places of texts on it have one.
    unit = scale.draws @ scale.mean / np.square(scale.mean).sum()
    errors = np.atleast_2d(np.cov(scale.draws[:, shared] / unit[:, None], rowvar=False))
    return KnownMarks(
        np.array([place[scale.ids[number]] for number in shared], dtype=np.int64), scale.mean[shared], errors
    )


def _conditions(store: RunFile) -> pl.DataFrame:
    """Who judged what with which template, as far as there are answers."""
    return store.conditions().filter(pl.col("win") > 0).sort("judge_id", "trait", "template_id")


def _store_of(run: Any) -> AbstractContextManager[RunFile]:
    """The run file of a run, or what holds it in memory."""
    if isinstance(run, str | os.PathLike) and is_run(run):
        return open_run(run)
    if hasattr(run, "state"):
        return cast("AbstractContextManager[RunFile]", run.state.reading())
    raise InputError(
        "with last year's run file as `known=`, this year's must be a run as well, so that judge, trait and template "
        "can be compared"
    )


def read_levels(levels: Table | FilePath) -> tuple[list[str], list[float]]:
    """The names of the levels, best first, and the marks at which each but the last begins.

    Raises:
        InputError: If they are out of order.
    """
    table = read_table(levels) if isinstance(levels, str | os.PathLike) else to_frame(levels, "levels")
    require_columns(table, ["level", "from_mark"], "levels")
    names = table["level"].cast(pl.String).to_list()
    marks = table["from_mark"].cast(pl.Float64, strict=False).to_list()
    if len(marks) > 1 and (marks[0] is None or (marks[-1] is not None and marks[0] < marks[-1])):
        names.reverse()
        marks.reverse()
    begins = marks if marks and marks[-1] is not None else marks[:-1]
    for name, mark in zip(names, begins, strict=False):
        if mark is None or not np.isfinite(mark):
            raise InputError(f"level {name!r} needs the mark from which it is given; only the lowest may have none")
    for place in range(1, len(begins)):
        if begins[place] >= begins[place - 1]:
            raise InputError(
                f"levels out of order: {names[place]!r} from {begins[place]:g} is listed below {names[place - 1]!r} "
                f"from {begins[place - 1]:g}; list them from the best to the lowest",
                argument="levels",
            )
    _require_names(names, "levels")
    return names, begins


def read_quota(quota: Mapping[str, float]) -> tuple[list[str], list[float]]:
    """The names of the levels, best first, and the share of the texts that each gets.

    Raises:
        InputError: If they do not add up to 1.
    """
    shares = require_mapping(quota, "quota")
    values = [require_number(share, f"quota of {name}", least=0, most=1) for name, share in shares.items()]
    _require_names(list(shares), "quota")
    if abs(sum(values) - 1) > _CLOSE_TO_ONE:
        raise InputError(f"the quotas add up to {100 * sum(values):.0f} %, not to 100 %; name every level", "quota")
    return list(shares), [value / sum(values) for value in values]


def read_boundary(boundary: Mapping[str, str], ids: Sequence[str], estimates: Any) -> tuple[list[str], list[int]]:
    """The names of the levels, best first, and the lowest text of each but the last, which is what lies below.

    Raises:
        InputError: If a text is not in the run, or the texts are out of order.
    """
    texts = [str(name) for name in require_mapping(boundary, "boundary").values()]
    names = [str(name) for name in boundary]
    place = {name: number for number, name in enumerate(ids)}
    strange = [name for name in texts if name not in place]
    if strange:
        raise InputError(f"boundary texts that are not in the run: {listed(strange)}", argument="boundary")
    places = [place[name] for name in texts]
    for level in range(1, len(names)):
        if estimates[places[level]] >= estimates[places[level - 1]]:
            raise InputError(
                f"levels out of order: {texts[level]!r}, the lowest {names[level]!r}, ranks above "
                f"{texts[level - 1]!r}, the lowest {names[level - 1]!r}; list them from the best to the lowest",
                argument="boundary",
            )
    _require_names(names, "boundary")
    return [*names, f"below {names[-1]}"], places


def _require_names(names: Sequence[str], argument: str) -> None:
    """At least one level, each with a name of its own."""
    if not names or any(not name for name in names) or len(set(names)) < len(names):
        raise InputError(f"`{argument}=` needs levels with different names, not {listed(names) or 'none'}", argument)
