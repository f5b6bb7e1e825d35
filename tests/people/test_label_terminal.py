"""Labelling in the terminal, word for word."""

from labelling import make_cases, sides

from pairscale.people import Case, LabelStore
from pairscale.people.terminal import label_in_terminal


def converse(store, cases, *typed: str, name: str = "ann") -> tuple[int, list[str]]:
    said: list[str] = []
    answers = iter(typed)

    def ask(prompt: str) -> str:
        said.append(prompt)
        try:
            return next(answers)
        except StopIteration:
            raise EOFError from None

    return label_in_terminal(store, name, ask=ask, show=said.append), said


def test_every_word(tmp_path):
    cases = make_cases(4)
    with LabelStore(tmp_path / "l.db", cases, seed=2) as store:
        given, said = converse(store, cases, "undo", "x", "skip", "skip no idea", "T maybe", "undo", "1", "q")
        rows = store.run.labels().to_dicts()
        assert given == len(rows) == 2
        assert (rows[0]["skipped"], rows[0]["preferred"]) == ("no idea", None)
        assert rows[1]["preferred"] in {"1", "2"}
        told = [line for line in said if not line.startswith(("\n", "Which"))]
        assert told[1:] == [
            "There is nothing to take back.", "Please answer 1 or 2, or tie.", "To skip, say why: skip REASON.",
            "Taken back.",
        ]  # fmt: skip
        shown = [sides(line) for line in said if line.startswith("\n")]
        assert all(len(pair) == 2 for pair in shown)
        given, said = converse(store, cases, "tie equal in all", "2")
        assert given == 2
        assert said[-1] == "Done. Thank you!"
        assert store.run.labels().to_dicts()[2]["comment"] == "equal in all"


def test_texts_cannot_command_the_terminal(tmp_path):
    case = Case("c", "t", "x\x1b[2J", "", "a\x1b]0;title\x07b", "c\rd\te\nf")
    with LabelStore(tmp_path / "l.db", [case]) as store:
        _, said = converse(store, [case])
    assert "\x1b" not in "".join(said)
    assert "\r" not in "".join(said)
    assert "\te\nf" in said[1]
