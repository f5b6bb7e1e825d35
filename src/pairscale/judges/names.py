"""What a person must know of who judged: the name, and whether it was a judgement at all."""

from __future__ import annotations

from collections.abc import Iterable

PANEL_OF = "panel of "
"""How the name of a panel begins; the names of its members follow, with commas."""

_WARNINGS = {
    "lexical": "lexical is the embedded baseline, which counts surface features and does not understand texts",
    "simulated": "simulated answers are drawn at random from a known truth, and no text is read",
}


def is_judge(name: str) -> bool:
    """Whether a name is that of a judge who is no person, such as ``lexical`` or ``openai:gpt-5.1``."""
    from pairscale.providers.catalog import PROVIDERS

    return name in _WARNINGS or (":" in name and name.partition(":")[0] in PROVIDERS)


def judged_by(names: Iterable[str | None]) -> str:
    """The names of judges in words.

    Example:
        >>> judged_by(["lexical", "openai:gpt-5.1", "lexical"])
        'lexical and openai:gpt-5.1'
    """
    different = list(dict.fromkeys(name for name in names if name))
    if len(different) > 5:
        different[5:] = [f"{len(different) - 5:,} more"]
    return " and ".join(filter(None, [", ".join(different[:-1]), *different[-1:]]))


def no_grading(names: Iterable[str | None]) -> str:
    """What to say where the embedded baseline or a simulated judge has judged; nothing for other judges.

    Args:
        names: the judges, as a run calls them (``lexical``) or as the user does (``simulated:theta_true``); of a panel,
            every member counts.

    Example:
        >>> no_grading(["openai:gpt-5.1"])
        ''
    """
    members = [member.strip() for name in names if name for member in name.removeprefix(PANEL_OF).split(",")]
    kinds = {member.partition(":")[0].partition(" (")[0] for member in members}
    warnings = [warning for kind, warning in _WARNINGS.items() if kind in kinds]
    return f"Not for grading: {'; '.join(warnings)}." if warnings else ""
