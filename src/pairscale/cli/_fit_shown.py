"""What ``pairscale fit`` shows of a fit: the facts of its JSON, the table and the lines under it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import pairscale as ps

if TYPE_CHECKING:
    import polars as pl

    from pairscale.models.bayes.repeats import RepeatAgreement
    from pairscale.models.bayes.results import BayesFit
    from pairscale.models.bradley_terry import BTFit
    from pairscale.models.elo import EloFit


@dataclass(frozen=True, slots=True)
class ShownFit:
    """What a model gave, as the command shows it."""

    facts: Mapping[str, Any]
    items: pl.DataFrame
    short: pl.DataFrame
    lines: tuple[str, ...]


def shown_fit(fit: BTFit | BayesFit | EloFit, seed: int, level: float, reference: str | None) -> ShownFit:
    """What to show of a fit."""
    if isinstance(fit, ps.BTFit):
        return _bradley_terry(fit, level, reference)
    return _elo(fit, seed) if isinstance(fit, ps.EloFit) else _bayes(fit, seed)


def _bradley_terry(fit: BTFit, level: float, reference: str | None) -> ShownFit:
    ranking = fit.theta
    n_comparisons = round(ranking["comparisons"].sum() / 2)
    facts = {
        "engine": fit.engine,
        "reliability": fit.reliability,
        "n_items": ranking.height,
        "n_comparisons": n_comparisons,
        "level": level,
        "reference": reference,
        "components": len(fit.components),
        "unjudged": fit.unjudged,
        "notices": fit.notices,
        "position": None if fit.position is None else asdict(fit.position),
        "ties": None if fit.ties is None else asdict(fit.ties),
        "prior_sd": fit.prior_sd,
        "repeats": None if fit.repeat_agreement is None else asdict(fit.repeat_agreement),
    }
    first = "component" if "component" in ranking.columns else "rank"
    lines = [f"{ranking.height:,} items, {n_comparisons:,} comparisons, engine {fit.engine}"]
    if fit.reliability is not None:
        lines.append(f"reliability {fit.reliability:.3f}{_below_zero(fit.reliability)}")
    if fit.position is not None:
        b = fit.position
        lines.append(f"preference for the first position {b.b:+.3f} logits{_interval(b.lower, b.upper, '+.3f')}")
    if fit.ties is not None:
        lines.append(f"ties: nu {fit.ties.nu:.3f}{_interval(fit.ties.lower, fit.ties.upper, '.3f')}")
    if fit.prior_sd is not None:
        lines.append(f"prior standard deviation of the scores {fit.prior_sd:.3f}")
    lines += _repeats(fit.repeat_agreement)
    simple = "se_mean" if reference is None else "se"
    error = next((name for name in ("se_bootstrap", "se_robust") if name in ranking.columns), simple)
    other = "the mean" if reference is None else reference
    ends = f"{100 * level:g} %"
    lines.append(f"{ends}: interval of the difference to {other}, theta ± z · {error}")
    short = ranking.select(first, "ID", "theta", _ends("lower", "upper", ends))
    return ShownFit(facts, ranking, short, tuple(lines))


def _ends(lower: str, upper: str, name: str) -> pl.Expr:
    """An interval as one column of text."""
    import polars as pl

    low, high = (
        pl.col(end).map_elements(lambda value: f"{value:.2f}", return_dtype=pl.String) for end in (lower, upper)
    )
    return pl.format("{} to {}", low, high).alias(name)


def _repeats(found: RepeatAgreement | None) -> list[str]:
    """How repeats of a pair agree, and what they count."""
    if found is None or found.agreement is None:
        return []
    expected = "" if found.expected is None else f", {found.expected:.0%} expected"
    counted = f"a further answer on a pair counts {1 - found.rho:.2f} ({found.how})"
    return [f"{found.n_repeats:,} repeats of a pair agree in {found.agreement:.0%}{expected}; {counted}"]


def _elo(fit: EloFit, seed: int) -> ShownFit:
    runs = fit.fit.runs
    facts = {
        "engine": fit.engine,
        "reliability": fit.reliability,
        "reliability_weighted": fit.reliability_weighted,
        "n_items": fit.elo.height,
        "runs": runs,
        "seed": seed,
        "notices": fit.notices,
    }
    lines = (
        f"{fit.elo.height:,} items, mean rating over {runs:,} random orders, elo_sd between them",
        f"reliability {_number(fit.reliability)}, weighted {_number(fit.reliability_weighted)} (for the higher rated)",
    )
    return ShownFit(facts, fit.elo, fit.elo.select("rank", "ID", "elo", "elo_sd"), lines)


def _bayes(fit: BayesFit, seed: int) -> ShownFit:
    from pairscale.adaptive.messages import provisional

    last, log = fit.fit, fit.round_log.row(0, named=True)
    items, prior = ps.summarize_items(fit), last.provenance.settings["prior_sd"]
    facts: dict[str, Any] = {
        "model_variant": last.model_variant,
        "reliability": log["reliability_EAP"],
        "n_items": items.height,
        "n_comparisons": last.n_comparisons,
        "seed": seed,
        "diagnostics": last.diagnostics.log_columns(),
        "epsilon": log["epsilon_mean"],
        "b": log["b_mean"],
        "prior_sd": prior if last.prior_sd is None else float(last.prior_sd.mean()),
        "repeats": asdict(last.repeat_agreement),
        "notices": fit.notices,
    }
    sizes = f"{items.height:,} items, {last.n_comparisons:,} comparisons, {last.posterior.n_draws:,} draws"
    lines = [
        f"{sizes} of {last.model_variant}",
        f"EAP reliability {_number(log['reliability_EAP'])}{provisional(log)}",
    ]
    if log["epsilon_mean"] is not None:
        lines.append(f"lapse rate {log['epsilon_mean']:.3f} ({log['epsilon_p2.5']:.3f} to {log['epsilon_p97.5']:.3f})")
    if log["b_mean"] is not None:
        low, high = log["b_p2.5"], log["b_p97.5"]
        lines.append(f"preference for the first position {log['b_mean']:+.3f} logits ({low:+.3f} to {high:+.3f})")
    if last.prior_sd is not None:
        lines.append(f"prior standard deviation of the scores, learned: {last.prior_sd.mean():.3f}")
    if (error := getattr(last, "error", None)) is not None:
        facts["error"] = float(error.mean())
        lines.append(f"error of the judge's probabilities {error.mean():.3f} logits")
    if fit.judges is not None:
        facts["judges"] = fit.judges.to_dicts()
        lines += [_judge(row) for row in fit.judges.iter_rows(named=True)]
    lines += _repeats(last.repeat_agreement)
    lines += [f"diagnostics FAIL: {reason}" for reason in last.diagnostics.reasons] or ["diagnostics pass"]
    lines.append("95 %: interval of the score")
    short = items.select("rank", "ID", "theta_mean", _ends("theta_p2.5", "theta_p97.5", "95 %"))
    return ShownFit(facts, items, short, tuple(lines))


def _judge(row: Mapping[str, Any]) -> str:
    """The line of one judge."""
    line = f"{row['judge_id']}: slope {row['slope']:.2f}{_interval(row['lower'], row['upper'], '.2f')}"
    if row["position"] is not None:
        ends = _interval(row["position_lower"], row["position_upper"], "+.2f")
        line += f", preference for the first position {row['position']:+.2f}{ends}"
    return f"{line}, {row['n']:,} comparisons{', WEAK' if row['weak'] else ''}"


def _interval(lower: float | None, upper: float | None, form: str) -> str:
    return "" if lower is None or upper is None else f" ({lower:{form}} to {upper:{form}})"


def _number(value: float | None) -> str:
    return "unknown" if value is None else f"{value:.3f}"


def _below_zero(reliability: float) -> str:
    if reliability >= 0:
        return ""
    return ": the errors of the scores are larger than their spread, so that the order says little; compare more"
