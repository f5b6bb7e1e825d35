"""``pairscale compare``."""

from __future__ import annotations

import pairscale as ps
from pairscale.cli._asking import make_judge, opening, say_judged
from pairscale.cli._common import Arguments, Output, echo, say
from pairscale.cli.from_verb import from_verb
from pairscale.core.display import printable

_WINNERS = {"SAMPLE_1": "better: the first text", "SAMPLE_2": "better: the second text"}


@from_verb("collect.verbs.compare", "TEXT1 TEXT2", hidden="timeout encoding")
def command(arguments: Arguments, emit: Output) -> None:
    """Ask a judge which of two texts is better: a quick try before a study.

    Examples:
        pairscale compare anna.txt ben.txt --judge openai:gpt-5.1
        pairscale compare "It rains." "It rains, so we stay." --judge lexical
    """
    from pairscale.collect.verbs import pair_of
    from pairscale.judges.base import judge_member
    from pairscale.providers.catalog import price_date, price_note

    pair = pair_of(arguments["text1"], arguments["text2"], None)
    arguments |= {"text1": pair["text1"], "text2": pair["text2"]}
    judge = make_judge(arguments)
    say(f"2 texts: {len(pair['text1']):,} and {len(pair['text2']):,} characters")
    opening(judge.condition.judge_id)
    answer = ps.compare(**arguments)
    row = answer.row(0, named=True)
    prices_as_of = price_date(judge_member(judge, "price"))

    def show() -> None:
        echo(_WINNERS.get(row["better_sample"], f"no winner: {row['outcome']}"))
        for name in ("probability", "cost", "latency_s", "total_tokens"):
            if row[name] is not None:
                echo(f"{name}: {row[name]:.4g}{price_note([prices_as_of]) if name == 'cost' else ''}")
        if row["content"]:
            echo(f"answer: {printable(row['content'])}")

    emit({"result": row, "prices_as_of": prices_as_of}, answer, show)
    say_judged(row["judge_id"], judge=judge)
