"""The judge card: what was measured of a judge, in one JSON file that later runs check and correct themselves by."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from pairscale._version import __version__
from pairscale.core.comparisons import Condition
from pairscale.core.display import ReportMixin, ReprMixin
from pairscale.core.encodings import read_bytes
from pairscale.core.errors import FileFormatError, without_logins
from pairscale.core.files import replacing
from pairscale.core.options import FilePath, checked, require_suffix
from pairscale.core.provenance import text_hash, utc_now

if TYPE_CHECKING:
    from pairscale.checks.calibration import Calibration

FORMAT = "pairscale judge card"
SCHEMA_VERSION = "1"
_AGAIN = "make it again with `pairscale check-judge DATA --labels FILE --out CARD.json`"

MEASURES: dict[str, tuple[str, str]] = {
    "agreement": ("Agreement with people", "share of the pairs that both decide in which they choose the same text"),
    "kappa": ("Kappa with people", "agreement beyond chance over wins and ties: 1 is all of it, 0 none"),
    "net_agreement": (
        "Net agreement",
        "of the pairs that people decide, share decided alike minus share decided the other way",
    ),
    "correlation": (
        "Correlation with people's scale",
        "of the judge's scores of the texts with people's, allowing for how well both are known",
    ),
    "consistency": ("Consistent over orders", "share of the pairs with the same winner in both orders"),
    "first_place": ("First place preferred", "share of answers with a winner that name the text shown first"),
    "position_effect": ("Position effect", "in logits; above 0 the first place is favoured"),
    "longer": ("Longer text preferred", "share of decided pairs of unequal length in which the longer text wins"),
    "longer_excess": (
        "Longer text preferred, more than by people",
        "the judge's share minus people's share, on the pairs that both decide",
    ),
    "repeatability": ("Same answer when asked again", "share of repeated questions with the same answer"),
    "distractor": (
        "Preferred after nonsense was appended",
        "share of texts that win in both orders against themselves once irrelevant text is appended",
    ),
    "validity": ("Valid answers", "share of questions that were answered"),
    "cost": ("Cost of a question", "mean, in US dollars"),
}
"""By the name of each measure on a card, what it is called and what it means."""


@dataclass(frozen=True, slots=True)
class Measure:
    """One figure of a judge card.

    Attributes:
        n: how many pairs or questions it rests on.
        value: the figure; None where it was not measured.
        lower: the lower end of its interval; None where it has none, or no limit.
        upper: the upper end, likewise.
        interval: how the interval was made.
        counts: what was counted.
        why: why it was not measured; None where it was.
    """

    n: int
    value: float | None = None
    lower: float | None = None
    upper: float | None = None
    interval: str | None = None
    counts: Mapping[str, int] = field(default_factory=dict[str, int])
    why: str | None = None

    @classmethod
    def missing(cls, why: str, **counts: int) -> Measure:
        """A figure that was not measured."""
        return cls(0, counts=counts, why=why)

    @property
    def measured(self) -> bool:
        """Whether there is a figure."""
        return self.value is not None


@dataclass(frozen=True, slots=True)
class JudgeIdentity:
    """Which judge was measured, with which prompt.

    Attributes:
        judge_id: who judges, such as ``openai:gpt-5.1``.
        condition_id: digest of the judge, the model, the prompt and every setting that may change an answer.
        backend: the family.
        model: Name of the model.
        template_id: the prompt template's name.
        template_hash: digest of its text.
        trait: what is judged: the trait of texts, or the criterion of an A/B comparison.
        kind: ``texts`` (pairs of texts) or ``cases`` (two answers to a task).
        settings: the other settings of the judge.
    """

    judge_id: str
    condition_id: str
    backend: str
    model: str | None
    template_id: str | None
    template_hash: str | None
    trait: str | None
    kind: str
    settings: Mapping[str, Any] = field(default_factory=dict[str, Any])

    @classmethod
    def of(cls, condition: Condition, kind: str, criterion: str | None = None) -> JudgeIdentity:
        """The identity of a judge.

        Args:
            condition: the judge's.
            kind: ``texts`` or ``cases``.
            criterion: what cases are judged by; a judge of your own need not have it in its condition.
        """
        plain = json.loads(without_logins(json.dumps(dict(condition.settings), default=str)))
        template = plain.pop("template", None)
        trait = condition.trait if criterion is None else criterion
        return cls(
            condition.judge_id, condition.condition_id, condition.backend, condition.model, condition.template_id,
            template, trait, kind, plain,
        )  # fmt: skip

    def differences(self, other: JudgeIdentity) -> list[str]:
        """What differs in another judge, in words; empty when it is the same judge with the same prompt."""
        card = self._facts()
        here = other._facts()
        differing = [name for name in card | here if card.get(name) != here.get(name)]
        if not differing and self.condition_id != other.condition_id:
            return ["its settings"]
        return [f"{name} {_shown(card.get(name))} on the card, {_shown(here.get(name))} here" for name in differing]

    def _facts(self) -> dict[str, Any]:
        """What tells judges apart, as a message calls it."""
        return {
            "judge": self.judge_id, "model": self.model, "kind of question": self.kind, "criterion": self.trait,
            "template": self.template_id, "text of the prompt": self.template_hash,
            **{f"setting {name}": value for name, value in sorted(self.settings.items())},
        }  # fmt: skip


def _shown(value: Any) -> str:
    """A setting as a message shows it."""
    if value is None:
        return "not set"
    return repr(value) if isinstance(value, str) else json.dumps(value)


@dataclass(frozen=True, slots=True, repr=False)
class JudgeCard(ReportMixin, ReprMixin, table="table"):
    """What was measured of a judge: :func:`check_judge` makes one, ``save`` and :func:`read_judge_card` keep it.

    Attributes:
        judge: which judge, with which prompt.
        measures: by the names of :data:`MEASURES`, the figures.
        data: what it was measured on: ``kind``, ``n_pairs``, ``n_labelled``, ``labellers``, ``seed`` and a ``digest``
            of texts and labels; ``answers``: by a digest of each labelled pair, whom people prefer and whom the judge,
            for comparing a later judge; with probabilities, ``calibration``: how right they are.
        level: Level of the intervals.
        made_at: when, UTC.
        version: the version of pairscale that made it.
    """

    judge: JudgeIdentity
    measures: Mapping[str, Measure]
    data: Mapping[str, Any]
    level: float = 0.95
    made_at: str = field(default_factory=utc_now)
    version: str = __version__

    def __str__(self) -> str:
        found = self.measures["agreement"]
        if found.value is None:
            return f"{self.judge.judge_id}: agreement with people not measured"
        line = f"{self.judge.judge_id} agrees with people on {found.value:.0%} of {found.n:,} pairs"
        if found.lower is not None and found.upper is not None:
            line += f" ({100 * self.level:g} % confidence interval {found.lower:.0%} to {found.upper:.0%})"
        scale = self.measures["correlation"]
        if scale.value is not None:
            ends = f"95 % interval {scale.lower:.2f} to {scale.upper:.2f}"
            line += f"; its scores of the texts correlate {scale.value:.2f} with people's ({ends})"
        return line

    @property
    def table(self) -> pl.DataFrame:
        """One row per measure: ``measure n value lower upper interval why``."""
        rows = [{"measure": name, **asdict(measure)} for name, measure in self.measures.items()]
        text = pl.String()
        figure = pl.Float64()
        schema = {"measure": text, "n": pl.Int64(), "value": figure, "lower": figure, "upper": figure}
        return pl.DataFrame(rows, schema={**schema, "interval": text, "why": text})

    @property
    def calibrations(self) -> list[Calibration]:
        """How right the judge's probabilities are: against people, and against the other order; empty without any."""
        from pairscale.checks.calibration import Calibration  # which needs the models

        return [Calibration.from_dict(one) for one in self.data.get("calibration", ())]

    @property
    def digest(self) -> str:
        """SHA-256 of the content: it shows that a file was damaged or edited, and proves nothing about its author."""
        return _digest(self._content())

    def _content(self) -> dict[str, Any]:
        return {"format": FORMAT, "schema_version": SCHEMA_VERSION, **asdict(self)}

    def to_dict(self) -> dict[str, Any]:
        """Everything as JSON has it, with the digest of the rest."""
        return {**self._content(), "digest": self.digest}

    @checked
    def save(self, path: FilePath) -> Path:
        """Write it to a ``.json`` file.

        Raises:
            InputError: If the name has another ending.
        """
        target = require_suffix(path, "path", (".json",))
        with replacing(target) as temporary:
            temporary.write_text(json.dumps(self.to_dict(), indent=1, ensure_ascii=False) + "\n", "utf-8")
        return target

    @classmethod
    def from_dict(cls, found: Any, where: object = "this") -> JudgeCard:
        """What :meth:`to_dict` gave, checked.

        Args:
            found: the document.
            where: it comes from, for messages.

        Raises:
            FileFormatError: If it is no card, of another version, or not as it was written.
        """
        if not isinstance(found, Mapping) or found.get("format") != FORMAT:
            raise FileFormatError(f"{where} is not a judge card; {_AGAIN.replace('make it again', 'make one')}")
        version = found.get("schema_version")
        if version != SCHEMA_VERSION:
            raise FileFormatError(
                f"{where} has schema_version {version!r}, and this pairscale reads {SCHEMA_VERSION!r}; {_AGAIN}"
            )
        if found.get("digest") != _digest({name: value for name, value in found.items() if name != "digest"}):
            raise FileFormatError(f"{where} is not as it was written: its digest does not fit its content; {_AGAIN}")
        recorded = {"correlation": {"n": 0, "why": "the card is of an earlier version"}, **found["measures"]}
        measures = {name: Measure(**recorded[name]) for name in MEASURES}
        judge = JudgeIdentity(**found["judge"])
        return cls(judge, measures, dict(found["data"]), found["level"], found["made_at"], found["version"])


def is_judge_card(path: FilePath) -> bool:
    """Whether a file can only be a judge card: a ``.json`` file that holds an object, not a table."""
    file = Path(path)
    if file.suffix.lower() != ".json" or not file.is_file():
        return False
    with file.open("rb") as opened:
        return opened.read(1024).removeprefix(b"\xef\xbb\xbf").lstrip().startswith(b"{")


@checked
def read_judge_card(path: FilePath) -> JudgeCard:
    """Read a judge card, and check that it is one, of this version, and as it was written.

    Args:
        path: The ``.json`` file that :meth:`JudgeCard.save` or ``pairscale check-judge --out`` wrote.

    Raises:
        FileFormatError: If it is none, of another version, or was edited.

    Example:
        >>> import pairscale as ps
        >>> sides = [("S01", "S02", "S02"), ("S03", "S01", "S03")]
        >>> people = [{"ID1": one, "ID2": two, "better_id": better} for one, two, better in sides]
        >>> check = ps.check_judge(ps.example_writing_samples, "lexical", labels=people, progress=False)
        >>> _ = check.save_card("judge-card.json")
        >>> ps.read_judge_card("judge-card.json").measures["agreement"].n
        2
    """
    content = read_bytes(path)
    try:
        found = json.loads(content)
    except ValueError as error:
        raise FileFormatError(f"{path} is not a judge card: it cannot be read as JSON ({error})") from None
    return JudgeCard.from_dict(found, path)


def _digest(content: Mapping[str, Any]) -> str:
    return text_hash(json.dumps(content, sort_keys=True, ensure_ascii=False, separators=(",", ":")))
