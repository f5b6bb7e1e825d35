"""A report in words: the headline, what a reliability means, how the judge behaved, the method."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pairscale._version import __version__
from pairscale.adaptive.messages import flips, panel_slopes, stop_in_words, top_sought
from pairscale.reporting.picture import number

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pairscale.reporting.figures import RankingFacts

_TIED_NAMES = 3
_NAMED_JUDGES = 5
_TO_READ = (
    "To read a score: a text that is one logit above another wins 73 of 100 careful comparisons with it, two logits "
    "above it 88, three 95."
)


def who(facts: RankingFacts) -> str:
    """Who judged."""
    names = facts.judges["judge_id"].unique(maintain_order=True).to_list()
    return "a judge" if not names else f"the judge “{names[0]}”" if len(names) == 1 else f"{len(names)} judges"


def headline(facts: RankingFacts) -> str:
    """What was ranked, by whom, what came out, how sure it is."""
    rows = facts.items
    text = f"{rows.height:,} texts were ranked by {who(facts)} in {facts.comparisons:,} comparisons. "
    if facts.n_groups > 1:
        return text + (
            f"They fall into {facts.n_groups} groups without a comparison between them; a score can only be compared "
            "with the others of its group."
        )
    text += _place(rows.iter_rows(named=True), rows["rank"].min(), "first")
    if rows["rank"].max() != rows["rank"].min():
        text += f", {_place(rows.iter_rows(named=True), rows['rank'].max(), 'last')}"
    if facts.reliability is None:
        return f"{text}."
    if unsure := facts.provisional:
        return f"{text}. The reliability of the scale is {facts.reliability:.2f}{unsure}."
    return f"{text}. The reliability of the scale is {facts.reliability:.2f}: {_meaning(facts.reliability)}."


def _place(rows: Any, rank: Any, word: str) -> str:
    names = [row["ID"] for row in rows if row["rank"] == rank]
    if len(names) == 1:
        return f"{names[0]} comes {word}"
    if len(names) > _TIED_NAMES:
        return f"{len(names):,} texts share the {word} place"
    return f"{', '.join(names[:-1])} and {names[-1]} share the {word} place"


BELOW_ZERO = "the errors of the scores are larger than their spread, so that the order says little; compare more"
"""What a reliability below 0 means."""


def _meaning(reliability: float) -> str:
    if reliability >= 0.9:
        return "judging again would give almost the same order"
    if reliability >= 0.8:
        return "judging again would give much the same order, with neighbours changing places"
    if reliability >= 0.7:
        return "the ends of the ranking are clear, its middle is not"
    if reliability < 0:
        return BELOW_ZERO
    return "too low to tell single texts apart"


def certainty(facts: RankingFacts) -> list[str]:
    """What the reliability and the intervals mean here."""
    said = []
    if facts.reliability is not None:
        said.append(
            f"The reliability is {facts.reliability:.3f}{facts.provisional}: the share of the variance of the scores "
            "that is not uncertainty. It says how repeatable the ranking is with this judge, not whether the judge is "
            "right."
        )
    items = facts.items
    if items["rank_lower"].null_count() == 0 and items.height > 1:
        width = (items["rank_upper"] - items["rank_lower"]).cast(float).quantile(0.5) or 0.0
        first = items.row(0, named=True)
        said.append(
            f"The rank of a text is known to within {width:.0f} places at the median (95 % intervals). "
            f"{first['ID']} is {_between(first['rank_lower'], first['rank_upper'])}."
        )
        apart = _told_apart(items)
        if apart is not None:
            said.append(
                f"{apart:.0%} of all pairs of texts are told apart: their intervals do not overlap. For the others the "
                "order may be chance."
            )
    said += _top(facts)
    if facts.stop_reason is not None:
        said.append(_ending(facts.stop_reason, facts))
    return said


def _top(facts: RankingFacts) -> list[str]:
    """What is known of the top K, in a run for it."""
    last = {} if facts.refits is None else facts.refits.row(-1, named=True)
    if (top := top_sought(last)) is None:
        return []
    named, others = facts.items.head(top), facts.items[top:].sort("top_prob", descending=True)
    least = named.sort("top_prob").row(0, named=True)
    told = (
        f"The run was for the {top:,} best texts: its pairs were chosen to tell these from the others, and the order "
        f"of the others is less sure. Of the first {top:,}, {last['top_wrong']:.1f} are expected not to be among the "
        f"{top:,} best. The least sure of them is {least['ID']}, which is one of the best with probability "
        f"{least['top_prob']:.2f}."
    )
    said = [told]
    if others.height and others["top_prob"][0] > 0:
        first = others.row(0, named=True)
        said.append(f"Of the others, {first['ID']} is the likeliest to belong to them: {first['top_prob']:.2f}.")
    return said


def _between(low: int, high: int) -> str:
    return f"in place {low}" if low == high else f"between place {low} and place {high}"


def _told_apart(items: Any) -> float | None:
    import numpy as np

    if items["lower"].null_count() or items.height < 2:
        return None
    lower, upper = np.sort(items["lower"].to_numpy()), items["upper"].to_numpy()
    # For every item, those that begin above its end.
    above = len(lower) - np.searchsorted(lower, upper, side="right")
    return float(above.sum() / (items.height * (items.height - 1) / 2))


def _ending(reason: str, facts: RankingFacts) -> str:
    from pairscale.adaptive.messages import STOPS, how_it_stands

    if reason == "open":
        return "The run has not come to its end; this is how it stands."
    last = None if facts.refits is None else facts.refits.row(-1, named=True)
    if reason == "btl_converged" and last is not None and top_sought(last) is not None:
        return f"The run stopped by its rule: {stop_in_words(last)}."
    if reason == "btl_converged":
        return (
            "The run stopped by its rule: the scores were reliable, and had become stable from one refit to the next."
        )
    if reason == "pairs_exhausted":
        target: float = 0.0 if facts.refits is None else facts.refits["eap_reliability_min"].to_list()[-1]
        short = 0.0 if facts.reliability is None else target - facts.reliability
        lacks = (
            f" The reliability is {short:.2f} short of the target {target:g}{facts.provisional}." if short > 0 else ""
        )
        return f"The run stopped: {STOPS[reason]}.{lacks}"
    return f"How the run ended: {how_it_stands(reason)}."


def _by(preset: str | None) -> str:
    return "" if preset is None else f", with the settings of the preset {preset}"


def judge(facts: RankingFacts) -> dict[str, str]:
    """How the judge behaved, by name."""
    health, said = facts.health, {}
    for row in facts.judges.iter_rows(named=True):
        named = {"trait": row["trait"], "template": row["template_id"]}
        parts = [row["model"], *(f"{kind} {name}" for kind, name in named.items() if name)]
        settings = ", ".join(part for part in parts if part)
        if settings or facts.judges.height == 1:  # of several, there is a table
            said[row["judge_id"]] = settings or "no settings"
    if facts.refits is not None:
        said |= panel_slopes(facts.refits.row(-1, named=True))
    if health is None:
        return said
    words = {"win": "decided", "tie": "ties", "flip": "flips", "abstention": "without an answer", "error": "failed"}
    said["answers"] = ", ".join(f"{count:,} {words[name]}" for name, count in health["outcomes"].items() if count)
    said["position"] = _position(health)
    if health["bias"] is not None:
        low, high = health["bias_interval"]
        bias = f"{number(health['bias'])} logits ({number(low)} to {number(high)})"
        said["position bias"] = f"{bias}; it is taken out of the scores"
    if health["lapse"] is not None:
        low, high = health["lapse_interval"]
        said["lapses"] = f"{health['lapse']:.1%} of the answers by chance ({low:.1%} to {high:.1%})"
    again = "no pair was asked twice"
    if health["consistent"] is not None:
        again = f"{health['consistent']:.0%} of the repeated answers agree ({health['repeated']:,} pairs)"
    said["the same pair again"] = again
    if health["n_reversed"]:
        said["the other order"] = flips(health["n_flips"], health["n_reversed"])
    return said


def _position(health: Mapping[str, Any]) -> str:
    """How often the text shown first won."""
    if health["first"] is None:
        return "not known: the results do not say who stood first"
    low, high = health["first_interval"]
    lean = "no lean to a position" if low <= 0.5 <= high else f"leans to the {'first' if low > 0.5 else 'second'} text"
    return f"the text shown first won {health['first']:.1%} (95 % interval {low:.1%} to {high:.1%}): {lean}"


def graph(facts: RankingFacts) -> str:
    """Who met whom, in a sentence or two."""
    known = facts.graph
    if known is None:
        return ""
    groups = "" if facts.n_groups == 1 else f" They fall into {facts.n_groups} groups that never met."
    return (
        f"{known['pairs']:,} different pairs were compared, {known['share']:.1%} of all there are. A text was in "
        f"{known['median']:g} comparisons at the median, {known['least']} at the least and {known['most']} at the most."
        f"{groups}"
    )


def surprise(row: Mapping[str, Any]) -> str:
    """An answer that the scores hardly expected."""
    return f"{row['winner']} was preferred to {row['loser']}, which the scores give {row['p']:.1%} ({row['judge_id']})"


def _prior(facts: RankingFacts) -> str:
    """What something known beforehand contributed, in a sentence or two; empty without it."""
    last = {} if facts.refits is None else facts.refits.row(-1, named=True)
    slope = last.get("prior_slope_mean")
    if slope is None:
        return ""
    low, high = last["prior_slope_p2.5"], last["prior_slope_p97.5"]
    name = "A number known beforehand" if facts.prior is None else f"The column “{facts.prior}”"
    told = f"{name} was used as what was known beforehand: one standard deviation of it is worth {slope:.2f} logits"
    sure = "it was not found to say anything about the scores" if low <= 0 <= high else "scores lean on it by that much"
    return f"{told} (95 % interval {low:.2f} to {high:.2f}); {sure}. "


def method(facts: RankingFacts) -> Sequence[str]:
    """A paragraph on the method, to be taken over into a paper, and how to read a score."""
    n = facts.items.height
    judged = []
    for row in facts.judges.iter_rows(named=True):
        trait = f" for “{row['trait']}”" if row["trait"] else ""
        template = f" with the prompt template “{row['template_id']}”" if row["template_id"] else ""
        judged.append(f"{row['judge_id']}{trait}{template}")
    judged = judged if len(judged) <= _NAMED_JUDGES else [f"{len(judged):,} judges"]
    pairs = f" of {facts.graph['pairs']:,} different pairs" if facts.graph is not None else ""
    text = (
        f"{n:,} texts were compared in pairs by {'; '.join(judged) or 'a judge'}: {facts.comparisons:,} comparisons"
        f"{pairs}, {2 * facts.comparisons / n:.1f} a text on average. "
    )
    if facts.model == "bayes":
        allows = {"lapses of the judge": "lapse", "a preference for the first position": "bias"}
        health = facts.health or {}
        for_these = " and ".join(what for what, name in allows.items() if health.get(name) is not None)
        for_these = f", which allows for {for_these}" if for_these else ""
        text += (
            f"Each pair was chosen adaptively by what was known so far{_by(facts.preset)}. Scores are posterior means "
            f"of a Bayesian Bradley–Terry model in logits with mean 0{for_these}; "
            "intervals are 95 % credible intervals. "
        )
    else:
        text += (
            f"Scores are abilities of a Bradley–Terry model in logits with mean 0 (engine {facts.model}); intervals "
            "are 95 % confidence intervals for the difference to the mean. "
        )
    text += _prior(facts)
    if facts.reliability is not None:
        name = "EAP reliability" if facts.model == "bayes" else "scale separation reliability"
        text += f"The {name} is {facts.reliability:.2f}{facts.provisional}. "
    return [f"{text}Computed with pairscale {__version__}.", _TO_READ]
