"""The simulator finds the two samples in templates of any layout, and answers in the form that they ask for."""

import pytest

import pairscale as ps
from pairscale.testing import Behaviour, ProviderSimulator

HEAD = "Compare two texts in {TRAIT_NAME}: {TRAIT_DESCRIPTION}\n\n"
ASK = "\n\nAnswer with <BETTER_SAMPLE>SAMPLE_1</BETTER_SAMPLE> or <BETTER_SAMPLE>SAMPLE_2</BETTER_SAMPLE>."
TEMPLATES = {
    "numbers": f"{HEAD}Sample 1:\n{{SAMPLE_1}}\n\nSample 2:\n{{SAMPLE_2}}{ASK}",
    "letters": f"{HEAD}A: {{SAMPLE_1}}\n\nB: {{SAMPLE_2}}\n\nIs A or B better?{ASK}",
    "headings": f"# Task\n\n{HEAD}## Text A\n\n{{SAMPLE_1}}\n\n## Text B\n\n{{SAMPLE_2}}\n\n## Answer{ASK}",
    "bold": f"{HEAD}**Essay A**\n\n{{SAMPLE_1}}\n\n**Essay B**\n\n{{SAMPLE_2}}{ASK}",
    "keys": f'{HEAD}{{\n  "response1": "{{SAMPLE_1}}",\n  "response2": "{{SAMPLE_2}}"\n}}{ASK}',
    "turned": f"{HEAD}The second text:\n{{SAMPLE_2}}\n\nThe first text:\n{{SAMPLE_1}}\n\nWhich one is better?{ASK}",
    "turned, ruled": f"{HEAD}SAMPLE_2:\n----\n{{SAMPLE_2}}\n----\nSAMPLE_1:\n----\n{{SAMPLE_1}}\n----{ASK}",
    "german": "Vergleiche nach {TRAIT_NAME} ({TRAIT_DESCRIPTION}).\n\nErster Aufsatz:\n{SAMPLE_1}\n\nZweiter Aufsatz:\n"
    "{SAMPLE_2}\n\nWelcher ist besser? <BETTER_SAMPLE>SAMPLE_1</BETTER_SAMPLE> oder "
    "<BETTER_SAMPLE>SAMPLE_2</BETTER_SAMPLE>.",
    "tags": f'{HEAD}<essay id="1">{{SAMPLE_1}}</essay>\n<essay id="2">{{SAMPLE_2}}</essay>{ASK}',
    "sides": f"{HEAD}<left>\n{{SAMPLE_1}}\n</left>\n<right>\n{{SAMPLE_2}}\n</right>{ASK}",
    "code": f"{HEAD}Text A:\n```\n{{SAMPLE_1}}\n```\n\nText B:\n```\n{{SAMPLE_2}}\n```\n\nWhich is better?{ASK}",
    "quotes": f"{HEAD}The first author: “{{SAMPLE_1}}”\n\nThe second author: “{{SAMPLE_2}}”\n\nWho is better?{ASK}",
    "steps": f"{HEAD}1. Read both.\n2. Decide.\n\nCandidate X\n{{SAMPLE_1}}\n\nCandidate Y\n{{SAMPLE_2}}\n\n"
    "If candidate X is better:\n<BETTER_SAMPLE>SAMPLE_1</BETTER_SAMPLE>\n"
    "If candidate Y is better:\n<BETTER_SAMPLE>SAMPLE_2</BETTER_SAMPLE>",
    "marks": f"{HEAD}--- BEGIN TEXT 1 ---\n{{SAMPLE_1}}\n--- END TEXT 1 ---\n"
    f"--- BEGIN TEXT 2 ---\n{{SAMPLE_2}}\n--- END TEXT 2 ---{ASK}",
    "no labels": f"{HEAD}{{SAMPLE_1}}\n\n-----\n\n{{SAMPLE_2}}\n\n-----{ASK}",
    "arena": f"{HEAD}[The Start of Assistant A's Answer]\n{{SAMPLE_1}}\n[The End of Assistant A's Answer]\n\n"
    f"[The Start of Assistant B's Answer]\n{{SAMPLE_2}}\n[The End of Assistant B's Answer]{ASK}",
    "records": f'{HEAD}{{\n  "model": "SAMPLE_1",\n  "output": """{{SAMPLE_1}}"""\n}},\n{{\n  "model": "SAMPLE_2",\n'
    f'  "output": """{{SAMPLE_2}}"""\n}}{ASK}',
    "table": f"{HEAD}| option A | {{SAMPLE_1}} |\n| option B | {{SAMPLE_2}} |{ASK}",
    "quotations": f"{HEAD}Response 1\n> {{SAMPLE_1}}\n\nResponse 2\n> {{SAMPLE_2}}{ASK}",
    "no answer": f"{HEAD}Text A: {{SAMPLE_1}}\n\nText B: {{SAMPLE_2}}\n\nWhich is better?",
}  # fmt: skip
TEXTS = {
    "good": "It rains, so we stay at home and read; then the sun comes out, and a dog barks.",
    "fair": "I like dogs: they bark.\nOne of them is mine, and the first thing in the morning is a walk",
    "poor": "A cat is what I want, or a bird",
    "bad": "Rain, more rain.",
}
SAMPLES = [{"ID": name, "text": text} for name, text in TEXTS.items()]


def quality(block: str) -> float:
    """That of the text in a block, which may hold signs and labels besides."""
    return -40.0 * next(place for place, text in enumerate(TEXTS.values()) if text.rstrip(".") in block)


@pytest.fixture(scope="module")
def server():
    with ProviderSimulator(Behaviour(quality=quality)) as running:
        yield running


def winners(server, template, **judge_args):
    """The better text of each pair, in both orders, and those that are named as the better one."""
    pairs = ps.make_pairs(SAMPLES)
    turned = pairs.select(ID1="ID2", text1="text2", ID2="ID1", text2="text1")
    judge_args |= {"base_url": f"{server.url}/v1", "api_key": "sk-simulated-0123456789abcdef"}
    expected = []
    named = []
    for table in (pairs, turned):
        done = ps.submit_pairs(table, "openai:gpt-4.1", template=template, judge_args=judge_args, progress=False)
        assert done.failed_pairs.height == 0, done.failed_pairs["error_message"][0]
        named += done.results["better_id"].to_list()
        rows = done.results.select("ID1", "ID2").iter_rows()
        expected += [min(row, key=list(TEXTS).index) for row in rows]
    return named, expected


@pytest.mark.parametrize("layout", TEMPLATES)
def test_a_template_of_any_layout_is_judged_by_its_texts(server, layout):
    named, expected = winners(server, TEMPLATES[layout])
    assert len(named) == 12
    assert named == expected


@pytest.mark.parametrize(
    ("shown", "prefix", "suffix"),
    [
        ("<winner>SAMPLE_1</winner>", "<winner>", "</winner>"),
        ("<winner>SAMPLE_1 or SAMPLE_2</winner>", "<winner>", "</winner>"),
        ('{"better": "SAMPLE_1"}', '{"better": "', '"}'),
        ("[[SAMPLE_1]]", "[[", "]]"),
        ("[[SAMPLE_1]]", "<BETTER_SAMPLE>", "</BETTER_SAMPLE>"),
    ],
)
def test_the_answer_has_the_form_that_the_prompt_shows(server, shown, prefix, suffix):
    template = f"{HEAD}Text A: {{SAMPLE_1}}\n\nText B: {{SAMPLE_2}}\n\nReply {shown}, or the same for SAMPLE_2."
    named, expected = winners(server, template, tag_prefix=prefix, tag_suffix=suffix)
    assert named == expected
