"""What a person must know of who judged: the name, and whether it was a judgement at all."""

from __future__ import annotations

from collections.abc import Iterable

PANEL_OF = "panel of "
"""How the name of a panel begins; the names of its members follow, with commas."""

_BASELINE = "lexical"
_SIMULATED = "simulated"


def is_judge(name: str) -> bool:
    """Whether a name is that of a judge who is no person, such as ``lexical`` or ``openai:gpt-5.1``."""
    from pairscale.providers.catalog import PROVIDERS

    return name in {_BASELINE, _SIMULATED} or (":" in name and name.partition(":")[0] in PROVIDERS)


def judged_by(names: Iterable[str | None]) -> str:
    """The names of judges in words.

    Example:
        >>> judged_by(["lexical", "openai:gpt-5.1", "lexical"])
        'lexical and openai:gpt-5.1'
    """
    found = list(dict.fromkeys(name for name in names if name))
    if len(found) > 5:
        return f"{', '.join(found[:5])} and {len(found) - 5:,} more"
    return " and ".join([", ".join(found[:-1]), found[-1]] if len(found) > 1 else found)


def no_grading(names: Iterable[str | None]) -> str:
    """What to say where the embedded baseline or a simulated judge has judged; nothing for other judges.

    Args:
        names: the judges, as a run calls them (``lexical``) or as the user does (``simulated:theta_true``); of a panel,
            every member counts.

    Example:
        >>> no_grading(["openai:gpt-5.1"])
        ''
    """
    single = [one for name in names if name for one in str(name).removeprefix(PANEL_OF).split(",")]
    kinds = {one.strip().partition(":")[0].partition(" (")[0] for one in single}
    said = []
    if _BASELINE in kinds:
        said.append("lexical is the embedded baseline, which counts surface features and does not understand texts")
    if _SIMULATED in kinds:
        said.append("simulated answers are drawn at random from a known truth, and no text is read")
    return f"Not for grading: {'; '.join(said)}." if said else ""
