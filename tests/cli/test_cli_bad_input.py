"""What cannot be done is said in one line, with exit code 1, or 2 where the usage is wrong, and harms nothing."""

import json
import shlex
import sqlite3
from pathlib import Path

import pytest

import pairscale as ps

_PAIRS = "ID1,text1,ID2,text2\na,x,b,y\n"
_JUDGE = ("--judge", "mine:longer")
_CASE = ("case_id", "task_id", "criterion", "task_input", "response_1", "response_2")


@pytest.fixture
def bad(folder, run):
    """Everything that people give by mistake."""
    files = {
        "empty.csv": "",
        "twice.csv": "ID,text\na,One.\nb,Two.\na,Three.\n",
        "one.csv": "ID,text\na,One.\n",
        "column.csv": "essay\nOne.\n",
        "blank.csv": "ID,text\na,One.\nb,\n",
        "half.csv": "ID1,text1,ID2\na,x,b\n",
        "itself.csv": "ID1,text1,ID2,text2\na,x,a,x\n",
        "good.csv": _PAIRS,
        "undecided.csv": "ID1,ID2,better_id\na,b,\nb,c,NA\n",
        "broken.jsonl": '{"ID": "a", "text": "x"}\n{"ID": \n',
        "lacking.txt": "Which is better, {SAMPLE_1} or {SAMPLE_2}?",
        "text.db": "This is not a run file.",
        "fails.py": "raise RuntimeError('broken on import')",
        "answers.csv": "ID1,ID2,better_id,judge_id\na,b,a,lexical\nb,c,b,lexical\na,c,a,lexical\n",
        "ties.csv": "ID1,ID2,better_id,outcome\na,b,,tie\n",
        "strangers.csv": "ID1,ID2,better_id\nx,y,x\n",
        "forward.csv": "ID1,ID2,better_id\na,b,a\n",
        "a.jsonl": '{"task_id": "t", "input": "Why?", "output": "Yes."}\n',
        "b.jsonl": '{"task_id": "t", "output": "Yes, because."}\n',
        "suite.jsonl": '{"task_id": "t", "input": "Why?"}\n',
        "cases.jsonl": json.dumps({name: name for name in _CASE}) + "\n",
    }
    for name, text in files.items():
        Path(name).write_text(text, "utf-8")
    Path("binary.csv").write_bytes(bytes(range(256)) * 20)
    Path("binary").mkdir()
    Path("binary/a.txt").write_bytes(bytes(range(256)))
    Path("nothing").mkdir()
    Path("alone").mkdir()
    Path("alone/a.txt").write_text("One.")
    return folder


WRONG = r"""
1 pairs empty.csv :: empty.csv
1 pairs nothing :: nothing: no file could be read as a text (txt, md, html
1 pairs alone :: at least two
1 pairs one.csv :: at least two
1 pairs twice.csv :: 'a'
1 pairs column.csv :: column.csv: it is not certain which column is meant; name it (--id-col)
1 pairs blank.csv :: 'b'
1 pairs twice.csv --id-col pupil :: 'pupil'
1 pairs binary.csv :: binary.csv
1 pairs binary :: a.txt
1 pairs missing.csv :: missing.csv
1 pairs mine.py :: mine.py
1 pairs broken.jsonl :: line 2
1 rank essays --encoding klingon :: 'klingon'
1 judge essays :: make them with `pairscale pairs essays --out pairs.csv`
1 judge twice.csv :: twice.csv holds no pairs (ID1 text1 ID2 text2); make them with
1 judge half.csv --judge mine:longer :: 'text2'
1 judge itself.csv --judge mine:longer :: 'a'
1 judge good.csv --judge oracle :: lexical, simulated:COLUMN
1 judge good.csv --judge openai: :: names no model
1 judge good.csv --judge mine:missing :: 'missing'
1 judge good.csv --judge replay:missing.csv :: missing.csv
1 judge good.csv --judge simulated:truth --run r.db :: in column 'truth' must be a number, not None
1 judge good.csv --judge mine:longer --trait charm :: overall_quality
1 judge good.csv --judge mine:longer --template lacking.txt :: {TRAIT_NAME}
1 judge good.csv --judge mine:longer --template defualt :: there are advocate, concise, default
1 judge good.csv --judge mine:longer --judge-arg bias :: must look like name=value
1 judge good.csv --judge simulated:x --judge-arg lapse=7 :: lapse
1 judge good.csv --judge simulated:x --judge-arg nonsense=1 :: nonsense
1 judge good.csv --judge mine:longer --run /proc/run.db :: /proc/run.db
1 judge good.csv --judge mine:longer --run missing/run.db :: missing
1 judge good.csv --judge mine:longer --run nothing :: a folder
1 judge good.csv --judge mine:longer --run answers.csv :: the ending of a table
1 judge good.csv --judge mine:longer --out /proc/a.csv :: --out /proc/a.csv cannot be written
1 judge good.csv --judge mine:longer --out answers.docx :: --out must be a file that ends in '.csv',
1 fit undecided.csv :: winner
1 fit good.csv :: good.csv holds pairs without answers
1 fit twice.csv :: ID1 ID2 better_id
1 fit missing.db :: missing.db
1 fit text.db :: text.db
1 fit undecided.csv --condition x :: --condition belongs to run files
1 trust missing.db :: missing.db: no such run file
1 trust answers.csv --labels missing.csv :: missing.csv: no such file
1 trust answers.csv --labels twice.csv :: ID1 ID2 better_id
1 trust answers.csv --labellers ann :: --labellers and --url belong to --label
1 trust answers.csv --a-col left :: belong to --labels
1 trust answers.csv --out missing/page.html :: there is no folder
1 status nothing :: nothing
1 status text.db :: text.db
1 templates nonesuch :: 'nonesuch'
1 traits charm :: overall_quality
2 judge good.csv --concurrency 0 :: --concurrency must be a whole number of 1 or more, not 0
2 judge good.csv --max-cost -1 :: --max-cost must be a number of 0 or more, not -1.0
2 pairs good.csv --n-pairs 0 :: --n-pairs must be a whole number of 1 or more, not 0
2 fit undecided.csv --engine abacus :: --engine must be 'auto', 'sirt', 'mle', 'map' or 'firth'
2 init study.json :: FILE must be a file that ends in '.toml', not 'study.json'
2 trust answers.csv --next 0 :: --next must be a whole number of 1 or more, not 0
2 trust answers.csv --label :: --label needs a run file, which has the texts, and answers.csv is none
2 trust answers.csv --labels ties.csv :: all labels are ties
2 trust answers.csv --labels answers.csv :: the labels are answers of 'lexical', who judged the run
2 trust answers.csv --labels strangers.csv :: the labels compare texts that are not in the run:
2 fit run.db --model elo --separate :: --separate belongs to --model bt
2 fit run.db --model bayes --bootstrap 50 :: --bootstrap belongs to --model bt
2 fit run.db --model elo --engine mle :: --engine belongs to --model bayes or --model bt, not to --model elo
2 fit run.db --model bayes --engine mle :: engine must be 'auto', 'sampler' or 'laplace', not 'mle'
2 fit run.db --model bayes --reference ann :: --reference belongs to --model bt
1 fit run.db --reference ann :: reference 'ann' must be one of the compared items
1 fit run.db --engine map --reference nobody :: reference 'nobody' must be one of the compared items
2 ab a.jsonl b.jsonl :: required: --criterion
1 ab a.jsonl b.jsonl --criterion c --key k.jsonl :: --key belongs to --labels
1 ab a.jsonl b.jsonl --criterion c --variant-a x:y :: belong to a suite
1 ab a.jsonl b.jsonl --criterion c --repeats 2 :: belong to a suite
1 ab a.jsonl b.jsonl --criterion c --variant-timeout 2 :: --repeats and --variant-timeout belong to a suite
2 ab suite.jsonl --variant-a mine:half --variant-b mine:half --criterion c --variant-timeout 0 :: --variant-timeout
2 ab suite.jsonl --criterion c :: a suite needs --variant-a
1 ab none.jsonl b.jsonl --criterion c :: no such file
1 ab a.jsonl b.jsonl --criterion c --judge nonsense :: no judge is called 'nonsense'
1 ab a.jsonl b.jsonl --criterion c --judge lexical --judge human :: --judge human stands alone
1 ab a.jsonl b.jsonl --criterion c --judge lexical --base-url http://x :: --base-url belongs to
1 ab a.jsonl b.jsonl --criterion c --labels b.jsonl :: no columns 'case_id'
1 label cases.jsonl --status :: no labels yet; run it without --status
1 label cases.jsonl --status --labellers ann :: --status changes nothing
1 label cases.jsonl --terminal --labellers a,b :: only one person can label in a terminal
1 label cases.jsonl --labellers ann,ann :: different names with commas
1 label cases.jsonl --url nonsense :: must look like https://labels.example.org
1 label cases.jsonl --instructions none.md :: none.md: no such file
1 compare a b --judge openai:gpt-4.1 :: OPENAI_API_KEY
1 compare a b --judge openai: :: names no model
1 compare a b --judge compatible:m :: needs the address
1 compare a b --judge ollama:m --base-url ftp://x :: not the address
1 compare a b --judge ollama:m --judge-arg warmth=1 :: no setting warmth
1 compare a b --judge ollama:m --judge-arg temperature=warm :: temperature
1 compare a b --judge lexical --base-url http://x :: --base-url
1 prices openai:nope :: no price of openai:nope is known
1 prices nobody :: no price of 'nobody' is known
1 prices nobody:x :: no provider is called 'nobody'
1 prices add :: `pairscale prices add FILE`
1 prices add there-is-none.json :: there-is-none.json
1 prices openai x.json :: `pairscale prices add FILE`
1 providers nobody :: no provider is called 'nobody'
1 providers add :: `pairscale providers add FILE`
1 providers groq x.json :: `pairscale providers add FILE`
1 report nowhere.db :: no such run file
2 report run.db --out report.pdf :: --out must be a file that ends in '.html',
1 report run.db --condition nobody :: no condition is called 'nobody'
1 report run.db --kind ab :: keeps no result of a comparison of two variants
1 gate nope.jsonl a.jsonl --criterion c --judge mine:longer :: nope.jsonl
2 gate a.jsonl --criterion c --judge mine:longer :: name two files of answers, A and B
2 gate a.jsonl b.jsonl :: required: --criterion
2 gate a.jsonl b.jsonl --criterion c --margin 0.5 :: --margin must be a number of 0 or more and below 0.5
2 gate a.jsonl b.jsonl --criterion c --fail-if bad :: --fail-if must be 'worse', 'not-better' or
2 gate a.jsonl b.jsonl --criterion c --summary no/x.md :: --summary must be a file in a folder that exists
2 gate a.jsonl b.jsonl --criterion c --judge human :: runs without people
1 gate a.jsonl --criterion c --judge mine:longer --baseline none.json :: none.json
1 rank essays --judge mine:longer --selector magic :: magic
1 rank essays --judge mine:longer --fit guess :: --fit 'guess' is not known; give one of 'exact', 'laplace'
1 rank essays --judge mine:longer --set cap_frac :: --set 'cap_frac' must look like name=value
1 rank essays --judge mine:longer --set cap=1 :: --set: no field 'cap'; there are
1 rank essays --judge mine:longer --run ranking.csv :: the ending of a table
1 rank essays --judge mine:longer --run mine.py :: mine.py is not a run file
1 audit missing.db :: missing.db: no such run file
1 audit mine.py :: not a run file
1 bias-study :: name texts, pairs or judgements as DATA, or see --published
1 bias-study essays :: essays holds no judgements (there is no column 'template_id'); say who judges with --judge
1 bias-study forward.csv :: forward.csv holds no judgements
1 bias-study essays --judge nobody :: no judge is called 'nobody'
1 bias-study essays --judge lexical --template nowhere :: 'nowhere'
1 bias-study essays --judge lexical --run run.csv :: --run run.csv: that is the ending of a table
"""
"""An exit code, a command, and words of what it says."""


@pytest.mark.parametrize("line", WRONG.strip().splitlines())
def test_one_line_says_what_is_wrong(cli, bad, line):
    command, words = line.split(" :: ")
    code, *args = shlex.split(command)
    sample = [path for path in bad.iterdir() if path.is_file()]
    before = {path: path.read_bytes() for path in sample}
    outcome = cli(*args)
    assert (outcome.code, outcome.out) == (int(code), "")
    (error,) = [line for line in outcome.lines if line.startswith("error: ")]
    assert outcome.lines[-1] == error
    assert words in error
    assert "please report it" not in error
    assert {path: path.read_bytes() for path in sample} == before


def test_a_damaged_run_file_is_refused_and_left_as_it_is(cli, run, pairs):
    whole = run.read_bytes()
    damaged = whole[:100] + b"\xff" * (len(whole) - 100)
    run.write_bytes(damaged)
    for args in (("judge", pairs, *_JUDGE, "--run", run), ("status", run), ("fit", run)):
        outcome = cli(*args)
        assert outcome.code == 1
        assert outcome.lines[-1].startswith("error: run.db")
        assert "please report it" not in outcome.err
    assert run.read_bytes() == damaged


def test_a_database_of_something_else_is_refused_and_keeps_its_rows(cli, pairs):
    with sqlite3.connect("other.db") as database:
        database.execute("create table precious (a)")
        database.execute("insert into precious values (1)")
    database.close()
    for args in (("judge", pairs, *_JUDGE, "--run", "other.db"), ("status", "other.db"), ("fit", "other.db")):
        outcome = cli(*args)
        assert outcome.code == 1
        assert outcome.lines[-1].startswith("error: other.db")
        assert "please report it" not in outcome.err
    with sqlite3.connect("other.db") as database:
        assert database.execute("select name from sqlite_master").fetchall() == [("precious",)]
        assert database.execute("select a from precious").fetchall() == [(1,)]
    database.close()


def test_a_changed_text_under_the_same_id_is_refused_and_the_answers_stay(cli, run, pairs):
    Path("changed.csv").write_text(pairs.read_text().replace("Somewhat longer.", "Something else."))
    outcome = cli("judge", "changed.csv", *_JUDGE, "--run", run)
    assert outcome.code == 1
    assert "'bob'" in outcome.lines[-1]
    assert cli("status", run, "--json").json["conditions"][0]["win"] == 6


def test_a_run_file_that_another_process_writes_is_busy(cli, run, pairs):
    with ps.open_run(run, write=True):
        outcome = cli("judge", pairs, *_JUDGE, "--run", run)
        assert outcome.code == 1
        assert "is being written by another run" in outcome.lines[-1]
        assert cli("status", run).code == 0


@pytest.mark.parametrize(
    "args",
    [
        ("judge", "good.csv", "--concurrency", "many"),
        ("judge", ""),
        ("judge", "good.csv", "--nonsense"),
        ("judge",),
        ("pairs", "good.csv", "--order", "sideways"),
        ("judge", "good.csv", "extra"),
        ("fit", "good.csv", "--model", "magic"),
        ("conquer",),
        ("--nonsense",),
        (),
    ],
    ids=" ".join,
)
def test_wrong_usage_is_exit_code_2_with_the_usage(cli, bad, args):
    outcome = cli(*args)
    assert (outcome.code, outcome.out) == (2, "")
    assert outcome.err.startswith("usage: pairscale")
    assert "Traceback" not in outcome.err


def test_what_nobody_foresaw_is_still_one_line(cli, monkeypatch, folder):
    def fail() -> None:
        raise RuntimeError("a\nb")

    monkeypatch.setattr("pairscale.cli.traits.ps.list_traits", fail, raising=False)
    outcome = cli("traits")
    assert outcome.code == 1
    assert outcome.lines == ["error: RuntimeError: a b (unexpected: PAIRSCALE_DEBUG=1 shows where; please report it)"]
    monkeypatch.setenv("PAIRSCALE_DEBUG", "1")
    from pairscale.cli import main

    with pytest.raises(RuntimeError):
        main(["traits"])
