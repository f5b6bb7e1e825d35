"""A run's win rate at equal length: with the run, in its summary, in its report."""

from dataclasses import replace

import pytest

import pairscale as ps
from pairscale.core.errors import InputError
from pairscale.evaluate.result import PairwiseRunResult


def longer(A, B):
    first, second = (len(side["text"]) for side in (A, B))
    return {"is_valid": True, "Y": 0.5 if first == second else int(first > second)}


def compared(**options):
    """B's answers are longer, but not all."""
    a, b = ({f"t{at}": "word " * (5 + at % 7 * times) for at in range(30)} for times in (1, 2))
    return ps.ab(a, b, criterion="c", progress=False, **{"judge": longer, "control": ["length"], **options})


def test_the_summary_has_the_rate_at_equal_length(message_snapshot):
    result = compared()
    found = result.length_controlled("c")
    assert (result.control, found.n) == (("length",), 30)
    assert found.raw_rate == result.win_rate("c").rate
    assert found.rate < found.raw_rate
    assert found.overlap == sum(
        abs(case.length_b - case.length_a) <= (case.length_a + case.length_b) / 8 for case in result.cases
    )
    assert "at equal length: B wins" in result.summary()
    for refuse in (lambda: result.length_controlled("d"), lambda: compared(control=["length", "tone"])):
        with pytest.raises(InputError) as refused:
            refuse()
        message_snapshot(refused)


def test_where_one_looked_after_every_case_there_is_no_interval():
    result = compared()
    found = replace(result, sequential=True).length_controlled("c")
    assert (found.rate, found.ci) == (result.length_controlled("c").rate, None)
    assert "looked at after every case" in found.notices[0]
    assert "interval" not in str(found)


def test_there_is_nothing_to_control_for_where_no_lengths_differ():
    a, b = ({f"t{n}": word * (n + 1) for n in range(20)} for word in ("yes ", "nay "))
    result = ps.ab(a, b, criterion="c", judge="lexical", control="length", progress=False)
    found = result.length_controlled("c")
    assert found.notices == ("no answers differ in length, so there is nothing to control for",)
    assert (found.rate, found.ci) == (found.raw_rate, result.win_rate("c").ci)
    assert f"c: note: {found.notices[0]}" in result.summary()


def test_it_is_kept_with_the_run_and_reported(tmp_path):
    run = tmp_path / "ab.db"
    result = compared(judge="tests.evaluate.test_length:longer", run=run)
    assert "at equal length: B wins" in ps.report(run, out=tmp_path / "page.html").read_text("utf-8")
    assert PairwiseRunResult.load(result.save(tmp_path)).control == ("length",)
