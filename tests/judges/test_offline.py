"""The judges that need no network: functions, simulation, replay, and judges by name."""

import asyncio
import functools
import math

import numpy as np
import pytest

import pairscale as ps
from pairscale.core.errors import InputError, UnknownNameError
from pairscale.judges.base import JudgePair
from pairscale.judges.build import judge_with

A, B = {"ID": "a", "item_id": "a", "text": "long text", "q": 1.5}, {"ID": "b", "item_id": "b", "text": "t", "q": -0.5}


def ask(judge, first=A, second=B, uid="a:b#1", attempt=1):
    return asyncio.run(judge.compare(JudgePair(first, second, uid, attempt)))


def answer(**values):
    return {"is_valid": True, "Y": None, "invalid_reason": None} | values


class TestFunctionJudge:
    @pytest.mark.parametrize(("y", "position"), [(1, 1), (0, 2), (1.0, 1), (True, 1), (False, 2)])
    def test_y_is_one_when_the_first_is_better(self, y, position):
        assert ask(ps.FunctionJudge(lambda A, B, state=None, **kwargs: answer(Y=y))).winner_pos == position

    def test_sees_every_column_and_the_keyword_arguments(self):
        seen = {}

        def judge(A, B, state="unset", **kwargs):
            seen.update(A=A, B=B, state=state, **kwargs)
            return answer(Y=1)

        ask(ps.FunctionJudge(judge, call_args={"temperature": 0}))
        assert seen == {"A": A, "B": B, "state": None, "temperature": 0}

    def test_an_invalid_answer_is_an_abstention_with_its_reason(self):
        verdict = ask(ps.FunctionJudge(lambda A, B: answer(is_valid=False, invalid_reason="both empty")))
        assert (verdict.outcome, verdict.error_message, verdict.error_code) == ("abstention", "both empty", "refusal")
        coded = ask(ps.FunctionJudge(lambda A, B: answer(is_valid=False, invalid_reason="parse_error")))
        assert coded.error_code == "parse_error"

    @pytest.mark.parametrize(
        ("reply", "winner"),
        [
            (1, 1), (2, 2), (True, 1), (False, 2), ("A", 1), ("B", 2), ("tie", None), (0.9, 1), (0.2, 2), (0.5, None),
            (A["ID"], 1), (B["ID"], 2), (np.int64(2), 2), (np.True_, 1), (np.float32(0.25), 2),
        ],
    )  # fmt: skip
    def test_it_may_return_a_plain_value(self, reply, winner):
        verdict = ask(ps.FunctionJudge(lambda A, B: reply))
        assert verdict.winner_pos == winner
        assert verdict.outcome == ("tie" if winner is None else "win")
        is_graded = isinstance(reply, float | np.floating)
        assert verdict.probability == (pytest.approx(float(reply)) if is_graded else None)

    @pytest.mark.parametrize(
        "reply", [None, "SAMPLE_1", "1", "b ", 0, 3, -1, 0.0, 1.0, 2.0, math.nan, {}, ["A"], {"winner": 1}]
    )
    def test_anything_else_is_a_failure_of_the_judge(self, reply):
        verdict = ask(ps.FunctionJudge(lambda A, B: reply))
        assert (verdict.outcome, verdict.error_code, verdict.failure) == ("error", "invalid_winner", "judge")
        assert f"returned {reply!r} ({type(reply).__name__})" in verdict.error_message

    @pytest.mark.parametrize("word", ["A", "B", "tie", "1", "2"])
    @pytest.mark.parametrize("place", ["first", "second"])
    def test_an_answer_with_two_meanings_is_refused(self, word, place):
        named = {"ID": word, "text": "Rain."}
        pair = ps.JudgePair(named, B) if place == "first" else ps.JudgePair(A, named)
        verdict = asyncio.run(ps.FunctionJudge(lambda A, B: word).compare(pair))
        assert verdict.failure == "judge"
        assert "is ambiguous" in verdict.error_message

    @pytest.mark.parametrize("reply", [answer(Y=2), answer(Y="1"), answer(), answer(Y=math.nan)])
    def test_a_mapping_without_a_known_choice_is_an_error_of_that_pair(self, reply):
        verdict = ask(ps.FunctionJudge(lambda A, B: reply))
        assert (verdict.outcome, verdict.error_code, verdict.failure) == ("error", "invalid_winner", "question")

    @pytest.mark.parametrize(
        ("error", "code", "failure"),
        [
            (TimeoutError("slow"), "timeout", "transient"),
            (ConnectionResetError("gone"), "http_error", "transient"),
            (ValueError("bug"), "judge_error", "question"),
        ],
    )
    def test_what_it_raises_is_data(self, error, code, failure):
        def judge(A, B):
            raise error

        verdict = ask(ps.FunctionJudge(judge))
        assert (verdict.outcome, verdict.error_code, verdict.failure) == ("error", code, failure)
        assert str(error) in verdict.error_message

    def test_identity_follows_the_source_unless_it_has_a_name(self):
        one, two = ps.FunctionJudge(lambda A, B: answer(Y=1)), ps.FunctionJudge(lambda A, B: answer(Y=0))
        assert one.condition.condition_id != two.condition.condition_id
        named = [ps.FunctionJudge(judge.function, name="mine") for judge in (one, two)]
        assert len({judge.condition.condition_id for judge in named}) == 1
        other = ps.FunctionJudge(one.function, name="mine", call_args={"k": 1})
        assert one.condition == ps.FunctionJudge(one.function).condition
        assert other.condition.condition_id != named[0].condition.condition_id

    def test_what_has_no_source_of_its_own_shares_no_answers(self):
        def made(y):
            return lambda A, B: answer(Y=y)

        class Caller:
            def __call__(self, A, B):
                return answer(Y=1)

        for function in (made(1), functools.partial(answer, Y=1), Caller()):
            one, two = ps.FunctionJudge(function), ps.FunctionJudge(function)
            assert one.condition == one.condition
            assert one.condition.condition_id != two.condition.condition_id
            named = {ps.FunctionJudge(function, name="n").condition.condition_id for _ in range(2)}
            assert len(named) == 1


class TestSimulatedJudge:
    def test_the_question_alone_decides(self):
        judge = ps.SimulatedJudge({"a": 0, "b": 0}, seed=3)
        answers = [ask(judge, uid=f"a:b#{n}").winner_pos for n in range(64)]
        assert answers == [ask(judge, uid=f"a:b#{n}").winner_pos for n in range(64)]
        assert len(set(answers)) == 2
        assert answers != [
            ask(ps.SimulatedJudge({"a": 0, "b": 0}, seed=4), uid=f"a:b#{n}").winner_pos for n in range(64)
        ]

    def test_abilities_from_a_column(self):
        assert ps.SimulatedJudge("q").probability(A, B) == pytest.approx(1 / (1 + math.exp(-2)))

    def test_every_setting_is_part_of_the_condition(self):
        base = ps.SimulatedJudge({"a": 1.0})
        for change in ({"bias": 0.1}, {"lapse": 0.1}, {"seed": 1}, {"abilities": {"a": 2.0}}):
            other = ps.SimulatedJudge(**({"abilities": {"a": 1.0}} | change))
            assert other.condition.condition_id != base.condition.condition_id


class TestReplayJudge:
    RESULTS = (
        {"ID1": "a", "ID2": "b", "better_id": "b", "outcome": "win", "probability": 0.2, "content": "x"},
        {"ID1": "a", "ID2": "b", "better_id": "a", "outcome": "win", "probability": None, "content": None},
        {"ID1": "b", "ID2": "a", "better_id": None, "outcome": "tie", "probability": 0.5, "content": None},
        {"ID1": "b", "ID2": "a", "better_id": None, "outcome": "error", "probability": None, "content": None},
    )

    def test_gives_what_was_recorded_in_order_and_nothing_else(self):
        judge = ps.ReplayJudge(list(self.RESULTS))
        first = ask(judge, uid="a:b#1")
        assert (first.winner_pos, first.probability, first.content) == (2, 0.2, "x")
        assert ask(judge, uid="a:b#2").winner_pos == 1
        assert ask(judge, uid="a:b#3").outcome == "abstention"
        assert ask(judge, B, A, uid="b:a#1").outcome == "tie"
        assert ask(judge, B, A, uid="b:a#2").outcome == "error"

    @pytest.mark.parametrize("uid", ["p#0", "p#7", "a:b#0", "a:b", "", "b:a#2", "a:b#²"])
    def test_a_name_of_ones_own_counts_nothing(self, uid):
        judge = ps.ReplayJudge(list(self.RESULTS))
        assert ask(judge, uid=uid).winner_pos == 2

    def test_replaying_a_run_gives_the_run(self):
        pairs = ps.make_pairs([{"ID": i, "text": i, "q": n} for n, i in enumerate("abcdef")])
        judge = ps.SimulatedJudge("q", tie_rate=0.2, invalid_rate=0.1, seed=2)
        first = ps.submit_pairs(pairs, judge, progress=False)
        again = ps.submit_pairs(pairs, ps.ReplayJudge(first.results), progress=False)
        columns = ["ID1", "ID2", "better_id", "outcome", "probability"]
        assert again.results.select(columns).equals(first.results.select(columns))
        assert again.failed_pairs.select("ID1", "ID2").equals(first.failed_pairs.select("ID1", "ID2"))


class TestByName:
    def test_a_function_of_a_module_in_this_folder(self, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)
        monkeypatch.syspath_prepend(str(tmp_path))
        (tmp_path / "my_judges_x.py").write_text(
            "def longer(A, B, trait_name=None, prompt_template=None):\n"
            "    assert trait_name == 'Clarity' and '{SAMPLE_1}' in prompt_template\n"
            "    return {'is_valid': True, 'Y': int(len(A['text']) > len(B['text']))}\n"
        )
        judge = ps.make_judge("my_judges_x:longer", trait="clarity", template="concise")
        assert ask(judge).winner_pos == 1
        assert (judge.condition.trait, judge.condition.template_id) == ("clarity", "concise")

    @pytest.mark.parametrize(
        ("name", "says"),
        [
            ("oracle", "lexical, simulated:COLUMN"),
            ("gpt-5", r"'gpt-5'\. A judge is provider:model \(such as openai:gpt-5.1\)"),
            ("no_such_module:gpt", "A judge is provider:model.*lexical"),
            ("math:nothing", "has a function 'nothing'.*lexical"),
            ("math:pi", "has a function 'pi'"),
            (":x", "A judge is provider:model.*lexical"),
            ("replay:", "replay:FILE"),
        ],
    )
    def test_unknown_names(self, name, says):
        with pytest.raises(UnknownNameError, match=says):
            ps.make_judge(name)

    def test_a_module_that_cannot_be_imported_is_told_in_a_line(self, message_snapshot, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)
        monkeypatch.syspath_prepend(str(tmp_path))
        (tmp_path / "broken_x.py").write_text("1 / 0\n")
        with pytest.raises(InputError) as refused:
            ps.make_judge("broken_x:judge")
        message_snapshot(refused)
        (tmp_path / "needs_x.py").write_text("import not_there_at_all\n")
        with pytest.raises(InputError, match="No module named 'not_there_at_all'"):
            ps.make_judge("needs_x:judge")


def test_settings_may_follow_a_name(message_snapshot, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "simulated-key")
    low = ps.make_judge("openai:gpt-5.1,reasoning=low", judge_args={"reasoning": "none", "max_tokens": 9})
    assert (low.condition.model, low.condition.settings["reasoning"]) == ("gpt-5.1", "low")
    assert low.condition.settings["max_tokens"] == 9
    panel = judge_with("simulated:truth,bias=1, simulated:truth,bias=2,seed=4")
    assert [member.bias for member in panel.members] == [1, 2]
    task = ps.pairwise_judge("openai:gpt-5.1,reasoning=low", criterion="kinder", key="kinder")
    condition = task.judges[0].condition
    assert (condition.model, condition.settings["reasoning"]) == ("gpt-5.1", "low")
    with pytest.raises(InputError) as refused:
        ps.make_judge("lexical,both")
    message_snapshot(refused)
