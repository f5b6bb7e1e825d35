"""Results of every form, as the tools write them, give what the plain form gives; what is ambiguous is refused."""

from __future__ import annotations

import csv
import io
import itertools
import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import pairscale as ps
from pairscale.core.comparisons import says_who_stood_first
from pairscale.core.errors import InputError, TableError
from pairscale.core.results import ResultColumns, as_comparisons, read_form

Game = tuple[str, str, str]  # the first text, the second, and: first, second, tie or none


def games_of(n_ids: int, n: int, seed: int, outcomes: str = "first second tie none") -> list[Game]:
    draw = random.Random(seed)
    ids = [f"S{at:02}" for at in range(n_ids)]
    chain = [(one, two, "first") for one, two in itertools.pairwise(ids)] + [(ids[-1], ids[0], "first")]
    return chain + [(*draw.sample(ids, 2), draw.choice(outcomes.split())) for _ in range(n)]


GAMES = games_of(7, 60, 1)
DECIDED = [game for game in GAMES if game[2] in {"first", "second"}]


def won(game: Game) -> str | None:
    return {"first": game[0], "second": game[1]}.get(game[2])


def winner_first(game: Game) -> tuple[str, str]:
    return (game[0], game[1]) if game[2] == "first" else (game[1], game[0])


def plain(games: list[Game]) -> list[dict[str, Any]]:
    code = {"first": 1.0, "second": 0.0, "tie": 0.5, "none": None}
    return [{"object1": one, "object2": two, "result": code[said]} for one, two, said in games]


def arena(games: list[Game]) -> list[dict[str, Any]]:
    """As the arena's files have it: two kinds of ties."""
    words = {"first": ["model_a"], "second": ["model_b"], "tie": ["tie", "tie (bothbad)"], "none": [None]}
    return [
        {"question_id": f"q{at}", "model_a": one, "model_b": two, "winner": words[said][at % len(words[said])],
         "judge": f"arena_user_{at % 5}", "turn": 1, "language": "English"}
        for at, (one, two, said) in enumerate(games)
    ]  # fmt: skip


def alpaca(games: list[Game]) -> list[dict[str, Any]]:
    code = {"first": 1.0, "second": 2.0, "tie": 1.5, "none": None}
    return [
        {"instruction": "Say it.", "generator_1": one, "generator_2": two, "dataset": "vicuna", "annotator": "gpt4",
         "preference": code[said]}
        for one, two, said in games
    ]  # fmt: skip


def alpaca_graded(games: list[Game]) -> list[dict[str, Any]]:
    code = {"first": 1.0000012, "second": 1.87, "tie": 1.5, "none": float("nan")}
    return [{"generator_1": one, "generator_2": two, "preference": code[said]} for one, two, said in games]


def mt_bench(games: list[Game]) -> list[dict[str, Any]]:
    code = {"first": "model_1", "second": "model_2", "tie": "tie", "none": "error"}
    return [{"question_id": 81, "model_1": a, "model_2": b, "winner": code[said]} for a, b, said in games]


WITH_TIES: dict[str, Callable[[list[Game]], Any]] = {
    "ours": lambda games: [
        {"ID1": g[0], "ID2": g[1], "better_id": won(g), "outcome": "tie" if g[2] == "tie" else "win"} for g in games
    ],
    "canonical": lambda games: [
        {"A_id": g[0], "B_id": g[1], "better_id": won(g), "outcome": "tie" if g[2] == "tie" else None} for g in games
    ],
    "arena": arena,
    "alpaca": alpaca,
    "alpaca, graded": alpaca_graded,
    "alpaca, old ties": lambda games: [
        row | {"preference": 0 if row["preference"] == 1.5 else row["preference"]} for row in alpaca(games)
    ],
    "mt-bench": mt_bench,
    "labels": lambda games: [
        {"case_id": f"c{at}", "criterion": "clarity", "labeller": "ann", "ID1": one, "ID2": two, "swapped": False,
         "preferred": {"first": "1", "second": "2", "tie": "tie", "none": None}[said]}
        for at, (one, two, said) in enumerate(games)
    ],
    "three columns": lambda games: [dict(zip("xyz", row.values(), strict=True)) for row in plain(games)],
}  # fmt: skip

DECIDED_ONLY: dict[str, Callable[[list[Game]], Any]] = {
    "better_sample": lambda games: [
        {"ID1": one, "ID2": two, "better_sample": "SAMPLE_1" if said == "first" else "SAMPLE_2"}
        for one, two, said in games
    ],
    "winner, loser": lambda games: [dict(zip(("winner", "loser"), winner_first(g), strict=True)) for g in games],
    "session": lambda games: [
        {"judge": 7, **dict(zip(("candidate_chosen", "candidate_not_chosen"), winner_first(g), strict=True))}
        for g in games
    ],
}


def scores(data: Any, **options: Any) -> list[tuple[str, float]]:
    return [(name, round(theta, 9)) for name, theta in ps.fit(data, **options).theta.select("ID", "theta").rows()]


@pytest.mark.parametrize("form", WITH_TIES)
@pytest.mark.parametrize("ties", ["half", "drop"])
def test_every_form_with_ties_gives_the_scores_of_the_plain_one(form, ties):
    assert scores(WITH_TIES[form](GAMES), ties=ties) == scores(plain(GAMES), ties=ties)


@pytest.mark.parametrize("form", DECIDED_ONLY)
def test_every_form_of_winners_gives_the_scores_of_the_plain_one(form):
    assert scores(DECIDED_ONLY[form](DECIDED)) == scores(plain(DECIDED))


def test_the_line_says_what_was_recognised():
    ties = sum(game[2] == "tie" for game in GAMES)
    assert read_form(arena(GAMES)).line == (
        f"{len(GAMES)} comparisons, read as an arena file: model_a, model_b, winner; {ties} ties"
    )


def test_an_inconsistent_tie_is_a_flip():
    rows = [{"model_a": "x", "model_b": "y", "winner": "tie (inconsistent)"}]
    assert as_comparisons(rows)["outcome"].to_list() == ["flip"]
    assert read_form(rows).line.endswith("; 1 flip")


def test_graded_preferences_are_probabilities_of_the_first():
    rows = [{"generator_1": "x", "generator_2": "y", "preference": value} for value in (1.0, 1.25, 1.5, 2.0, None)]
    read = read_form(rows)
    assert read.table.select("better_id", "outcome", "probability").rows() == [
        ("x", "win", 1.0), ("x", "win", 0.75), (None, "tie", 0.5), ("y", "win", 0.0), (None, None, None),
    ]  # fmt: skip
    assert not says_who_stood_first(rows)


@pytest.mark.parametrize("form", ["winner, loser", "session"])
def test_a_list_of_winners_says_nothing_about_positions(message_snapshot, form):
    rows = DECIDED_ONLY[form](DECIDED)
    assert not says_who_stood_first(rows)
    assert not says_who_stood_first(as_comparisons(rows))
    with pytest.raises(InputError) as refused:
        ps.fit(rows, position=True)
    message_snapshot(refused)
    with pytest.raises(TableError) as refused:
        ps.bias(rows)
    message_snapshot(refused)


def test_labels_stand_in_the_order_in_which_they_were_seen():
    row = {"case_id": "c", "labeller": "ann", "ID1": "x", "ID2": "y", "preferred": "1"}
    seen = as_comparisons([row | {"swapped": swapped} for swapped in (False, True)])
    assert seen.select("ID1", "ID2", "better_id", "judge_id").rows() == [("x", "y", "x", "ann"), ("y", "x", "x", "ann")]
    assert as_comparisons(seen).select("ID1", "ID2", "better_id").rows() == [("x", "y", "x"), ("y", "x", "x")]
    assert says_who_stood_first([row | {"swapped": True}])
    assert not says_who_stood_first([row])


# Verdicts.


def votes(*said: Any, a: str = "x", b: str = "y") -> list[dict[str, Any]]:
    return [{"model_a": a, "model_b": b, "winner": word} for word in said]


@pytest.mark.parametrize(
    "said",
    [
        ("model_a", "model_b", "tie", "Tie (BothBad)", ""), ("A", "B", "draw", "both_bad", "NA"),
        ("x", "y", "tie", "bothbad", None), (1, 2, "tie", "equal", ""), ("left", "right", "tied", "both bad", "none"),
        (" model_a ", "Model_B", "TIE", "tie", "nan"),
    ],
)  # fmt: skip
def test_verdicts_may_be_sides_or_ids(said):
    frame = as_comparisons(votes(*said) if not isinstance(said[0], int) else votes(*map(str, said)))
    assert frame["better_id"].to_list() == ["x", "y", None, None, None]
    assert frame["outcome"].to_list() == ["win", "win", "tie", "tie", "abstention"]


def test_verdicts_that_are_not_understood_are_listed_with_their_counts(caplog):
    rows = votes(*["model_a"] * 5, *["model_b"] * 4, "tie", "skip", "skip", "unsure")
    assert "not understood, and left out: 'skip' (2), 'unsure' (1)" in read_form(rows).line
    for fit in (ps.fit, ps.fit_bt_model, ps.fit_elo_model):
        caplog.clear()
        fit(rows)
        assert sum("'skip' (2), 'unsure' (1)" in message for message in caplog.messages) == 1


@pytest.mark.parametrize(
    ("rows", "says"),
    [
        (votes("links", "rechts", "links"), r"not understood: 'links' \(2\), 'rechts' \(1\)"),
        (votes("model_a", "model_a", "zwei"), r"not understood: 'zwei' \(1\)"),  # all wins of one side would be lost
        (votes("0", "1", "1"), r"not understood: '1' \(2\), '0' \(1\)\. .* 0 and 1 alone may mean either side"),
        ([{"generator_1": "x", "generator_2": "y", "preference": value} for value in (0.1, 0.9)], "must be 1 .* to 2"),
        (
            [{"winner": "x", "loser": "y", "model_a": "x", "model_b": "y"}],
            "could be winner loser or model_a model_b winner; say which columns are meant with `a_col=`, `b_col=` and",
        ),
        ([{"model_a": {"n": 1}, "model_b": "b", "winner": "tie"}], "column 'model_a' holds objects, not text"),
        ([{"ID": "a", "text": "b"}], "name the columns with `a_col=`, `b_col=` and `winner_col=`"),
    ],
)
def test_what_is_ambiguous_is_refused(rows, says):
    with pytest.raises(TableError, match=says):
        read_form(rows)


# Columns that the user names.


def test_named_columns_settle_what_is_ambiguous():
    rows = [{**dict(zip(("winner", "loser"), winner_first(g), strict=True)), "object1": g[0], "object2": g[1],
             "result": 1 if g[2] == "first" else 0} for g in DECIDED]  # fmt: skip
    with pytest.raises(TableError, match="could be"):
        ps.fit(rows)
    assert scores(rows, a_col="object1", b_col="object2", winner_col="result") == scores(plain(DECIDED))
    assert scores(rows, a_col="winner", b_col="loser", winner_col="winner") == scores(plain(DECIDED))


def test_paths_lead_into_nested_values(tmp_path):
    rows = [
        {"pair": [{"id": one}, {"id": two}], "vote": {"by": "ann", "of": {"winner": won((one, two, said))}}}
        for one, two, said in GAMES
    ]
    path = tmp_path / "votes.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)), "utf-8")
    (tmp_path / "votes.json").write_text(json.dumps(rows), "utf-8")
    for prefix in ("", "$."):
        options = {
            "a_col": f"{prefix}pair.0.id",
            "b_col": f"{prefix}pair[1].id",
            "winner_col": f"{prefix}vote.of.winner",
        }
        for data in (rows, path, tmp_path / "votes.json"):
            assert scores(data, **options) == scores(plain(DECIDED))


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"a_col": "vote", "b_col": "vote"}, "cannot be one column"),
        ({"a_col": "pair", "b_col": "pair.1", "winner_col": "vote"}, "column 'ID1' holds"),
        ({"a_col": "nothing", "b_col": "pair.1", "winner_col": "vote"}, "no column 'nothing'; it has 'pair', 'vote'"),
        ({"a_col": "pair.7", "b_col": "pair.1", "winner_col": "vote"}, "nothing at 'pair.7'|no column 'pair.7'"),
        ({"winner_col": "vote"}, "no column 'ID1'"),
    ],
)
def test_columns_that_are_not_there_are_refused(options, says):
    with pytest.raises(TableError, match=says):
        read_form([{"pair": ["x", "y"], "vote": "x"}] * 2, columns=ResultColumns(**options))


# What travels along.


def test_weights_count_and_are_said(caplog):
    rows = [{"winner": "a", "loser": "b", "weight": 3}, {"winner": "b", "loser": "a", "weight": 1}]
    copies = [row for row in rows for _ in range(row["weight"])]
    assert scores(rows) == scores([{name: row[name] for name in ("winner", "loser")} for row in copies])
    assert "comparisons count by the column 'weight'" in caplog.text
    ps.fit(rows, model="elo", runs=2)
    assert "the column 'weight' is not used: model='elo' counts every comparison once" in caplog.text


# Files as people have them.

FILES = {"arena": arena, "alpaca": alpaca, "mt-bench": mt_bench, "session": DECIDED_ONLY["session"]}


def write_csv(rows: list[dict[str, Any]], names: list[str], shown: Callable[[str], str], separator: str) -> str:
    out = io.StringIO()
    writer = csv.writer(out, delimiter=separator, lineterminator="\r\n")
    writer.writerow([shown(name) for name in names])
    for row in rows:
        writer.writerow(["" if row[name] is None else row[name] for name in names])
    return out.getvalue()


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=40)
@given(data=st.data())
def test_files_with_other_cases_orders_marks_and_columns(data, tmp_path: Path):
    form = data.draw(st.sampled_from(sorted(FILES)))
    games = games_of(data.draw(st.integers(3, 6)), data.draw(st.integers(0, 12)), data.draw(st.integers(0, 99)))
    games = [game for game in games if form != "session" or game[2] in {"first", "second"}]
    numeric = data.draw(st.booleans())
    games = [(a[1:].lstrip("0") or "0", b[1:].lstrip("0") or "0", s) if numeric else (a, b, s) for a, b, s in games]
    if numeric:  # 1 and 2 would be words for the sides
        games = [(f"{int(a) + 10}", f"{int(b) + 10}", s) for a, b, s in games]
    extra = {"note; of mine": 'said "no", twice', "Nr": 5, "empty": None}
    rows = [{**row, **extra} for row in FILES[form](games)]
    names = data.draw(st.permutations(list(rows[0])))
    shown = data.draw(st.sampled_from([str, str.upper, str.lower, str.title, lambda name: f" {name} "]))
    separator = data.draw(st.sampled_from(",;\t"))
    encoding = data.draw(st.sampled_from(["utf-8", "utf-8-sig", "utf-16"]))
    path = tmp_path / "results.csv"
    path.write_bytes(write_csv(rows, list(names), shown, separator).encode(encoding))
    assert scores(path, ties="half") == scores(plain(games), ties="half")


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=15)
@given(data=st.data())
def test_tables_of_other_kinds(data, tmp_path: Path):
    form = data.draw(st.sampled_from(sorted(FILES)))
    rows = FILES[form](DECIDED)
    frame = pl.DataFrame(rows, infer_schema_length=None)
    kind = data.draw(st.sampled_from(["parquet", "json", "jsonl", "xlsx", "pandas", "arrow"]))
    table: Any = {"pandas": frame.to_pandas, "arrow": frame.to_arrow}.get(kind, lambda: None)()
    if table is None:
        table = tmp_path / f"results.{kind}"
        from pairscale.core.files import write_table

        write_table(frame, table)
    assert scores(table) == scores(plain(DECIDED))


FORMS = [
    "ID1 ID2 better_id", "ID1 ID2 better_sample", "A_id B_id better_id", "object1 object2 result", "winner loser",
    "candidate_chosen candidate_not_chosen", "model_a model_b winner", "model_1 model_2 winner",
    "generator_1 generator_2 preference", "ID1 ID2 preferred", "ID1 ID2 preferred swapped",
    "x", "a b", "a b c",
]  # fmt: skip
MORE = [
    "judge", "judge_id", "weight", "probability", "outcome", "order_known", "trait", "x", "winner", "loser",
    "result",
]  # fmt: skip
CELLS = st.one_of(
    st.none(), st.sampled_from(["x", "y", "", "NA", "tie", "model_a", "A", "1", "2", "error", " x"]), st.integers(0, 3),
    st.floats(), st.booleans(), st.lists(st.integers(), max_size=2), st.dictionaries(st.just("k"), st.text(max_size=2)),
)  # fmt: skip


@settings(max_examples=300, suppress_health_check=[HealthCheck.too_slow])
@given(st.sampled_from(FORMS), st.lists(st.sampled_from(MORE), unique=True, max_size=3), st.data())
def test_any_table_is_read_or_refused(form, more, data):
    ids = st.sampled_from(["x", "y", "z", 1, 2.0]) if data.draw(st.booleans()) else CELLS
    kinds = {name: ids if at < 2 else CELLS for at, name in enumerate(form.split())}
    kinds |= {name: CELLS for name in more if name not in kinds}
    rows = data.draw(st.lists(st.fixed_dictionaries(kinds), max_size=4))
    try:
        found = read_form(rows)
    except InputError:
        return
    again = read_form(found.table)
    first, second = (one.table.select("ID1", "ID2", "better_id") for one in (found, again))
    assert first.equals(second)
    assert found.table.select(pl.col("ID1", "ID2").is_null().any()).row(0) in {(False, False), (None, None)}
    assert says_who_stood_first(rows) == says_who_stood_first(found.table) or not rows
