"""What is known of providers and models: where services are, what models take, and what tokens cost.

Two dated JSON documents come with the package, ``data/providers.json`` and ``data/prices.json``. Users add rows of
their own with ``pairscale providers add`` and ``pairscale prices add``; these lie in ``PAIRSCALE_HOME/data`` and come
before the bundled ones. The classes of this module are the schema of both. A model that no row covers gets what most
models take, and no price rather than a guessed one.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, date, datetime
from functools import cache, partial
from importlib import import_module
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar, get_args

import msgspec
from msgspec import Meta, Struct, field
from msgspec.structs import asdict, replace

from pairscale.core.errors import InputError, UnknownNameError
from pairscale.core.home import home_folder
from pairscale.providers.base import Provider, Usage

# The schema

Level = Literal["none", "minimal", "low", "medium", "high", "xhigh", "max"]
LEVELS: tuple[Level, ...] = get_args(Level)
"""The words of ``LLMRequest.reasoning``, the least first; ``enabled`` is the eighth: think, as the family does."""
UNIT = "USD per million tokens"
"""The unit that a file of prices must name."""

When = Literal["always", "unthinking", "never"]
"""When a model takes a parameter: always, only while it does not think, or never."""
Thinking = Literal["none", "effort", "level", "budget", "adaptive", "switch", "fixed", "any"]
Text = Annotated[str, Meta(pattern=r"\S")]
Variable = Annotated[str, Meta(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")]
Date = Annotated[str, Meta(pattern=r"^\d{4}-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01])$")]
Dollars = Annotated[float, Meta(ge=0, lt=1_000_000)]
Tokens = Annotated[int, Meta(ge=0)]


class Capabilities(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """What a model takes.

    Attributes:
        family: name of the row; ``unknown`` for none.
        thinking: how it is told to think: ``none`` (it cannot), ``effort`` (a word), ``level`` (Gemini's word),
            ``budget`` (a number of tokens), ``adaptive`` (Anthropic's own measure, and a word), ``switch`` (on or off),
            ``fixed`` (it always thinks, and cannot be told), ``any`` (unknown: what is asked is sent).
        levels: the words of ``reasoning`` that it takes, the least first.
        thinks_unasked: whether it thinks by default.
        budget: the least and the most tokens of a thinking budget; None when it takes no number.
        temperature: when it takes a temperature, ``top_p`` and ``top_k``.
        thinking_temperature: the temperature to send by default while it thinks; None for none. Else it is 0.
        one_sampler: whether a temperature and ``top_p`` exclude each other.
        logprobs: when it gives log-probabilities.
        structured: how it is held to given answers: by a ``schema``, by a forced ``tool``, or ``none``.
        think_tags: whether thoughts may precede the answer, up to ``</think>``.
        endpoint: the one of OpenAI's endpoints that it is on, when it is on one alone.
        off: Anthropic's word for thinking that is turned off.
    """

    family: Text = "unknown"
    thinking: Thinking = "any"
    levels: tuple[Level, ...] = LEVELS
    thinks_unasked: bool = False
    budget: tuple[Tokens, Tokens] | None = None
    temperature: When = "always"
    thinking_temperature: Annotated[float, Meta(ge=0, le=2)] | None = None
    one_sampler: bool = False
    logprobs: When = "always"
    structured: Literal["schema", "tool", "none"] = "schema"
    think_tags: bool = False
    endpoint: Literal["chat.completions", "responses"] | None = None
    off: Literal["disabled", "between_tools"] = "disabled"


class FamilyRow(Capabilities, frozen=True, kw_only=True):
    """What models of some providers take.

    Attributes:
        provider: whose models; one or several.
        model: regular expression that is searched for in the model's name, in small letters.
        as_of: date of the row; by default that of the document.
        source: where it comes from; by default that of the document.
        is_own: whether it is the user's own.
    """

    provider: Text | tuple[Text, ...]
    model: str
    as_of: Date | None = None
    source: Text | None = None
    is_own: bool = False

    def covers(self, provider: str, model: str) -> bool:
        """Whether this row is about a model."""
        providers = [self.provider] if isinstance(self.provider, str) else self.provider
        return provider in providers and re.search(self.model, model) is not None

    def problem(self) -> str | None:
        """Why it cannot be right, although each of its values may be."""
        return _pattern_problem(self.model)


def _pattern_problem(pattern: str) -> str | None:
    """Why a pattern cannot be searched for."""
    try:
        re.compile(pattern)
    except re.error as error:
        return f"model must be a regular expression, not {pattern!r:.60}: {error}"
    return None


class Preset(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """A service or a server that speaks OpenAI's chat completions.

    Attributes:
        name: what users write before the colon.
        base_url: its address; ``{VARIABLE}`` stands for an environment variable, ``{ONE|OTHER}`` for the first that is
            set, ``{VARIABLE=value}`` for one with a default.
        base_url_variable: environment variable that replaces the address.
        replacements: parts of the address, once the variables are in their places, that are written differently.
        key_variable: environment variable of the key.
        key: whether there must be one: ``required`` or ``optional``.
        auth: header of the key: ``bearer`` (``Authorization``) or ``api-key``; tokens of a callable are always sent as
            ``Authorization``.
        headers: further headers of every request.
        max_tokens: name of the field for the most tokens of an answer.
        seed: name of the field for the seed.
        reasoning: how it is told to think: ``reasoning_effort``; ``reasoning`` as an object; ``thinking`` and an
            effort; or by the arguments of the model's chat template.
        switched_on: the effort that means: think as usual.
        is_free: whether its tokens cost nothing, as those of a server of your own.
        cost_in_reply: whether its replies state what they cost.
        note: what to know about it.
        as_of: date of the row; by default that of the document.
        source: where it comes from; by default that of the document.
        is_own: whether it is the user's own.
    """

    name: Annotated[str, Meta(pattern=r"^(?!add$)[A-Za-z_][A-Za-z0-9_]*$")]
    base_url: str
    base_url_variable: Variable | None = None
    replacements: Mapping[str, str] = field(default_factory=dict)
    key_variable: Variable | None = None
    key: Literal["required", "optional"] = "required"
    auth: Literal["bearer", "api-key"] = "bearer"
    headers: Mapping[str, Text] = field(default_factory=dict)
    max_tokens: Literal["max_tokens", "max_completion_tokens"] = "max_tokens"
    seed: Literal["seed", "random_seed"] = "seed"
    reasoning: Literal["effort", "object", "thinking", "template"] = "effort"
    switched_on: Text | None = None
    is_free: bool = False
    cost_in_reply: bool = False
    note: Text | None = None
    as_of: Date | None = None
    source: Text | None = None
    is_own: bool = False

    def address(self) -> str:
        """The address, with the environment's values in their places.

        Raises:
            InputError: that names the variable, when one is not set or cannot be part of an address.
        """
        address = _PLACE.sub(self._value, self.base_url)
        for part, other in self.replacements.items():
            address = address.replace(part, other)
        return address

    def _value(self, place: re.Match[str]) -> str:
        names = place[1].split("|")
        values = [os.environ.get(name, "").strip() for name in names]
        value = next(filter(None, values), place[2])
        if not value:
            raise InputError(f"{self.name} needs {' or '.join(names)} for its address; set it, or give base_url")
        if place.start() == 0:  # the address of the server itself, which is checked like any other
            return value.rstrip("/")
        if not re.fullmatch(r"[A-Za-z0-9._:-]+", value):
            raise InputError(f"{names[0]}={value!r} cannot be part of the address of {self.name}")
        return value

    def problem(self) -> str | None:
        """Why it cannot be right, although each of its values may be."""
        if self.name in CLASSES or self.name in EMBEDDED:
            return f"{self.name} comes with pairscale; give your provider another name"
        plain = _PLACE.sub("https://x" if self.base_url.startswith("{") else "x", self.base_url)
        if not re.fullmatch(r"https?://[^/\s@{}#]+(/[^\s@{}#]*)?", plain):
            return "base_url is not the address of a server, such as https://host/v1"
        for name in self.headers:
            if re.search(r"auth|key|token|secret|cookie", name, re.IGNORECASE):
                return f"headers: {name} may hold a secret; name its variable as key_variable instead"
        return None


_PLACE = re.compile(r"\{([A-Z][A-Z0-9_]*(?:\|[A-Z][A-Z0-9_]*)*)(?:=([^{}]*))?\}")


class LongPrice(Struct, frozen=True, forbid_unknown_fields=True):
    """Prices of prompts with more than ``above`` tokens."""

    above: Annotated[int, Meta(ge=1)]
    input: Dollars
    output: Dollars
    cached: Dollars | None = None
    written: Dollars | None = None


class Price(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """What a model costs, in US dollars per million tokens.

    Attributes:
        input: tokens of the question.
        output: tokens of the answer, thoughts included.
        cached: tokens of the question that came from the provider's cache; None means as ``input``.
        batch: share of the price that batches cost, such as 0.5; None when no batch price is known.
        as_of: date of the price.
        written: tokens of the question that went into the provider's cache; None means as ``input``.
        tiers: share of the price that service tiers cost, such as ``{"flex": 0.5}``, where the price of a tier that is
            not named is not known; None when this is the price of every tier.
        long: prices of prompts with more than ``above`` tokens, such as ``{"above": 200000, "input": 4.0, "output":
            18.0}``; None when they cost the same.
        batch_cached: cached tokens in a batch, where that is another share than ``batch``.
        source: where the price comes from.
    """

    input: Dollars
    output: Dollars
    cached: Dollars | None = None
    batch: Annotated[float, Meta(ge=0, le=1)] | None = None
    as_of: Date | None = None
    written: Dollars | None = None
    tiers: Mapping[str, Dollars] | None = None
    long: LongPrice | None = None
    batch_cached: Dollars | None = None
    source: Text | None = None

    @property
    def is_free(self) -> bool:
        """Whether tokens cost nothing."""
        return self.input == 0 and self.output == 0

    def to_dict(self) -> dict[str, Any]:
        """The price alone, as JSON holds it."""
        return {name: msgspec.to_builtins(getattr(self, name)) for name in Price.__struct_fields__}


class PriceRow(Price, frozen=True, kw_only=True):
    """The price of some models of a provider.

    Attributes:
        provider: whose models.
        model: regular expression that is searched for in the model's name, without regard to case.
        start: first day of the price; None when it is in force already.
        end: last day of the price; None when none is known.
        note: what to know about it.
        is_own: whether it is the user's own.
    """

    provider: Text
    model: Text
    start: Date | None = field(default=None, name="from")
    end: Date | None = field(default=None, name="until")
    note: Text | None = None
    is_own: bool = False

    @property
    def is_in_force(self) -> bool:
        """Whether the price holds today."""
        now = today().isoformat()
        return (self.start is None or self.start <= now) and (self.end is None or now <= self.end)

    def covers(self, provider: str, model: str) -> bool:
        """Whether it is the price of a model."""
        return self.provider == provider and re.search(self.model, model, re.IGNORECASE) is not None

    def problem(self) -> str | None:
        """Why it cannot be right, although each of its values may be."""
        for name, value in (("input", self.input), ("output", self.output)):
            if 0 < value < 0.0001:
                return f"{name} {value:g} is no price of a million tokens; is it that of one token?"
        return _pattern_problem(self.model)


class Table(Struct, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """A document: providers, what their models take, prices, or several of these."""

    as_of: Date
    source: Text
    unit: Literal["USD per million tokens"] | None = None
    note: str | None = None
    providers: list[Preset] = []
    models: list[FamilyRow] = []
    prices: list[PriceRow] = []

    @property
    def rows(self) -> dict[str, list[Any]]:
        """The rows of each kind, with the date and the source of the document where they have none of their own."""
        rows: dict[str, list[Any]] = {"providers": self.providers, "models": self.models, "prices": self.prices}
        return {kind: [self._dated(row) for row in rows[kind]] for kind in rows}

    def _dated(self, row: Any) -> Any:
        return replace(row, as_of=row.as_of or self.as_of, source=row.source or self.source)


# The documents


@cache
def bundled(name: str) -> Table:
    """A document that comes with the package: ``providers`` or ``prices``."""
    content = files("pairscale.providers").joinpath(f"data/{name}.json").read_bytes()
    return msgspec.json.decode(content, type=Table)


@cache
def _bundled_rows(kind: str) -> list[Any]:
    return bundled("prices" if kind == "prices" else "providers").rows[kind]


def own_file() -> Path:
    """Where the user's own document is; it need not exist."""
    return home_folder("data") / "catalog.json"


def _rows(kind: str) -> list[Any]:
    """The rows of a kind, the user's own before the bundled ones."""
    own = _read(own_file()).rows[kind] if own_file().exists() else []
    return [*(replace(row, is_own=True) for row in own), *_bundled_rows(kind)]


def _read(path: Path) -> Table:
    """The document of a user's file; anything that cannot be right is refused by its row."""
    try:
        table = msgspec.json.decode(path.read_bytes(), type=Table)
    except msgspec.ValidationError as error:
        raise _refused(str(path), error) from None
    except (OSError, msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise InputError(f"{path} cannot be read as JSON: {error}") from None
    if table.prices and table.unit is None:
        raise InputError(f"{path}: unit: {_HINTS['unit']}")
    for kind, rows in table.rows.items():
        for number, row in enumerate(rows, 1):
            problem = row.problem()
            if problem:
                raise InputError(f"{path}: {kind}: row {number}: {problem}")
    return table


_HINTS = {
    **dict.fromkeys(("as_of", "from", "until"), "must be a date such as 2026-10-21"),
    **dict.fromkeys(("key_variable", "base_url_variable"), "must name an environment variable, never be a key itself"),
    "unit": f"must be {UNIT!r}; convert the prices first",
    "source": "must say where this comes from",
    "name": "must be of letters, digits and _, and not 'add'",
    "batch": "must be the share that batches cost, such as 0.5",
}
"""What fields must be, where the schema's own words say less."""


def _refused(where: str, error: Exception) -> InputError:
    """A value that the schema refuses, with its place: ``mine.json: prices: row 2: input: Expected float``."""
    words, _, place = str(error).partition(" - at ")
    steps = [name or f"row {int(number) + 1}" for name, number in re.findall(r"(\w+)|\[(\d+)\]", place)]
    hint = _HINTS.get(steps[-1]) if steps else None
    return InputError(": ".join([where, *steps, hint or words.replace("`", "")]))


def today() -> date:
    """The date in UTC."""
    return datetime.now(UTC).date()


def add_rows(path: Path) -> tuple[Path, int, int]:
    """Add the rows of a file to the user's own.

    A provider of the same name is replaced, and so is a row of ``models`` or ``prices`` of the same provider and
    pattern.

    Args:
        path: a JSON file with ``as_of``, ``source``, and ``providers``, ``models`` or ``prices``; with prices, also
            ``unit`` (:data:`UNIT`).

    Returns:
        The user's own file, how many rows were added, and how many were replaced.

    Raises:
        InputError: it is not right: no date, no source, another unit, or a row that cannot be.
    """
    table = _read(path)
    target = own_file()
    old = _read(target).rows if target.exists() else {}
    added = 0
    replaced = 0
    merged = {}
    for kind, rows in table.rows.items():
        identities = [_identity(row) for row in rows]
        kept = [row for row in old.get(kind, []) if _identity(row) not in identities]
        merged[kind] = [*rows, *kept]
        added += len(rows)
        replaced += len(old.get(kind, [])) - len(kept)
    if not added:
        raise InputError(f"{path} holds no rows of providers, models or prices")
    target.parent.mkdir(parents=True, exist_ok=True)
    part = target.with_name(f"{target.name}.part")
    part.write_bytes(msgspec.json.format(msgspec.json.encode(replace(table, unit=UNIT, **merged)), indent=2))
    part.replace(target)
    return target, added, replaced


def _identity(row: Preset | FamilyRow | PriceRow) -> list[Any]:
    """What a row is replaced by: one with the same of these."""
    return [getattr(row, name, None) for name in ("name", "provider", "model", "start")]


# What models take


def presets() -> Mapping[str, Preset]:
    """The presets by name, those of the user in place of bundled ones.

    Raises:
        InputError: the user's own file is not right.
    """
    return {row.name: row for row in sorted(_rows("providers"), key=lambda row: row.is_own)}


def capabilities(provider: str, model: str, overrides: Mapping[str, Any] | None = None) -> Capabilities:
    """What ``model`` takes at ``provider``.

    Args:
        provider: the provider's name.
        model: its name there.
        overrides: fields of :class:`Capabilities` that the user knows better.

    Raises:
        InputError: when an override is not a field, or has a value that it cannot have.

    Example:
        >>> capabilities("openai", "gpt-5.1").levels
        ('none', 'low', 'medium', 'high')
        >>> capabilities("openai", "gpt-5.1", {"temperature": "never"}).temperature
        'never'
    """
    row = family_row(provider, model)
    if not overrides:
        return row
    try:
        return msgspec.convert(asdict(row) | dict(overrides), FamilyRow)
    except msgspec.ValidationError as error:
        raise _refused("overrides", error) from None


def rules_of(provider: str, overrides: Mapping[str, Any]) -> Callable[[str], Capabilities]:
    """:func:`capabilities` for a provider that is in use: the rules of a model are read once, and stay the same."""
    return cache(partial(capabilities, provider, overrides=overrides))


def family_row(provider: str, model: str) -> FamilyRow:
    """The first row of the provider that knows the model; then, for what speaks like OpenAI, that of ``compatible``.

    Raises:
        InputError: the user's own file is not right.
    """
    name = model.lower().removeprefix("ft:").removeprefix("models/")
    rows: list[FamilyRow] = _rows("models")
    matches = [row for row in rows if row.covers(provider, name)]
    if provider not in CLASSES:
        matches += [row for row in rows if row.covers("compatible", name)]
    return matches[0] if matches else FamilyRow(provider=provider, model="")


# What tokens cost


def price_table(provider: str | None = None) -> Sequence[PriceRow]:
    """The prices, the user's own before the bundled ones; the first row that covers a model today is its price.

    Args:
        provider: whose models; None for all.

    Raises:
        InputError: the user's own file is not right.
    """
    return [row for row in _rows("prices") if provider in {None, row.provider}]


def price_of(provider: str, model: str, own_price: Price | Mapping[str, Any] | None = None) -> Price | None:
    """The price of a model: the one given, or that of the tables; None when it is not known.

    Args:
        provider: whose model.
        model: its name.
        own_price: a price of your own, ``{"input": 0.25, "output": 2.0}``.

    Raises:
        InputError: what is given is no price.
    """
    if own_price is not None:
        try:
            return msgspec.convert(msgspec.to_builtins(own_price), Price)
        except (msgspec.ValidationError, TypeError) as error:
            raise _refused("price", error) from None
    for row in price_table(provider):
        if row.covers(provider, model) and row.is_in_force:
            return row
    if provider == "ollama" or (provider in presets() and presets()[provider].is_free):
        return Price(0.0, 0.0, source="a server of your own, whose tokens cost nothing")
    return None


UNDATED = "not dated"
"""In place of the date of a price that was given without one."""


def price_note(dates: Iterable[str | None]) -> str:
    """The dates of the prices behind a cost, to be shown right after every cost.

    Args:
        dates: of the prices, several with commas between them; None for a cost that rests on no price of ours, such as
            one that a judge states itself.

    Example:
        >>> price_note(["2026-10-14", "2026-10-21, 2026-10-14", None])
        ' (prices of 2026-10-14 and 2026-10-21)'
        >>> price_note([None])
        ''
    """
    every = {day for days in dates if days for day in days.split(", ")}
    dated = sorted(every - {UNDATED})
    parts = []
    if dated:
        parts.append(f"prices of {' and '.join(dated)}")
    if UNDATED in every:
        parts.append("given prices without a date")
    return f" ({', '.join(parts)})" if parts else ""


def price_date(price: object) -> str | None:
    """The date of a price; None when there is no price, or nothing to pay."""
    if not isinstance(price, Price) or price.is_free:
        return None
    return price.as_of or UNDATED


_USUAL_TIERS = frozenset({"default", "standard", "standard_only", "auto", "on_demand", "unspecified"})


def cost_of(usage: Usage, price: Price | None, *, batch: bool = False, tier: str | None = None) -> float | None:
    """What a reply cost, in US dollars; None when the price or the tokens are not known.

    Args:
        usage: the tokens.
        price: of the model.
        batch: whether it came in a batch.
        tier: the service tier that answered, where the provider says.
    """
    completion = usage.completion
    if completion is None and usage.prompt is not None and usage.total is not None:
        completion = max(0, usage.total - usage.prompt)  # a prompt that was blocked has no answer to count
    if price is None or usage.prompt is None or completion is None:
        return None
    share = _share(price, batch, tier)
    if share is None:
        return None
    rates: Price | LongPrice = price
    if price.long is not None and usage.prompt > price.long.above:
        rates = price.long
    cached_rate = rates.input if rates.cached is None else rates.cached
    written_rate = rates.input if rates.written is None else rates.written
    cached = min(usage.cached or 0, usage.prompt)
    written = min(usage.written or 0, usage.prompt - cached)
    fresh = usage.prompt - cached - written
    paid = (fresh * rates.input + written * written_rate + completion * rates.output) * share
    cached_price = cached_rate * share
    if batch and price.batch_cached is not None:
        cached_price = price.batch_cached
        if price.cached:
            cached_price *= cached_rate / price.cached
    return (paid + cached * cached_price) / 1_000_000


def _share(price: Price, batch: bool, tier: str | None) -> float | None:
    """What is paid of the usual price; None when it is not known."""
    if batch:
        return 1.0 if price.batch is None else price.batch
    if tier is None or price.tiers is None or tier.lower() in _USUAL_TIERS:
        return 1.0
    return price.tiers.get(tier.lower())


# Providers by name

CLASSES = {
    "openai": "OpenAI",
    "anthropic": "Anthropic",
    "gemini": "Gemini",
    "together": "Together",
    "ollama": "Ollama",
    "compatible": "Compatible",
}
"""The providers with a module of their own, and the class in it."""
EMBEDDED = frozenset({"lexical", "simulated", "replay", "human"})
"""The judges that are no provider's."""
_registered: dict[str, Callable[..., Provider]] = {}
Made = TypeVar("Made", bound=Callable[..., Any])


class _ProviderNames:
    """All names that there are now: the user's own rows and registered classes among them."""

    def __iter__(self) -> Iterator[str]:
        return iter(dict.fromkeys([*CLASSES, *presets(), *_registered]))


PROVIDERS = _ProviderNames()
"""The names of the providers."""


def register_provider(provider: Made) -> Made:
    """Make a provider of your own known in this process, also as a decorator: then ``NAME:MODEL`` is a judge.

    For a server that speaks OpenAI's chat completions, a row of data is enough: ``pairscale providers add``.

    Args:
        provider: a class with the members of :class:`~pairscale.providers.base.Provider`, and its ``name``. One that is
            registered again under the same name takes the place of the first.

    Returns:
        The class itself.

    Raises:
        InputError: when it has no name, or one that is taken.

    Example:
        >>> from pairscale.providers.compatible import Compatible
        >>> @register_provider
        ... class Mine(Compatible):
        ...     name, base_url, key_variable = "mine", "https://models.example.org/v1", "MINE_API_KEY"
        >>> provider_named("mine").base_url
        'https://models.example.org/v1'
    """
    name = getattr(provider, "name", None)
    if not isinstance(name, str) or not name.isidentifier():
        raise InputError(f"a provider needs a name of letters, digits and _ as its attribute `name`, not {name!r}")
    if name in CLASSES or name in EMBEDDED:
        raise InputError(f"{name} comes with pairscale; give your provider another name")
    _registered[name] = provider
    return provider


def _class_of(name: str) -> Callable[..., Provider]:
    """What makes a provider of this name."""
    if name in CLASSES:
        provider_class: Callable[..., Provider] = getattr(import_module(f"pairscale.providers.{name}"), CLASSES[name])
        return provider_class
    if name in _registered:
        return _registered[name]
    if name in presets():
        return partial(_class_of("compatible"), preset=presets()[name])
    raise UnknownNameError(f"no provider is called {name!r}; there are {', '.join(PROVIDERS)}")


def provider_named(name: str, **settings: Any) -> Provider:
    """A provider by its name.

    Args:
        name: ``openai``, ``anthropic``, ``gemini``, ``together``, ``ollama``, ``compatible``, a hosted service such as
            ``openrouter`` or ``azure`` (``pairscale providers`` lists them), or one of your own.
        settings: of the provider's class: ``overrides`` (what its models can do) for all of them, ``version`` and
            ``key_header`` for Anthropic, ``api_version`` for Gemini.

    Raises:
        UnknownNameError: when there is none of that name.
        InputError: when it has no such setting.

    Example:
        >>> provider_named("openai").base_url
        'https://api.openai.com/v1'
    """
    make = _class_of(name)
    try:
        return make(**settings)
    except TypeError as error:
        raise InputError(f"the provider {name} does not take these settings: {error}") from None


def split_model(text: str) -> tuple[str, str]:
    """The provider and the model of ``provider:model``; the model may hold colons itself.

    Raises:
        UnknownNameError: when no provider has that name.
        InputError: when there is no model.

    Example:
        >>> split_model("ollama:qwen3:32b")
        ('ollama', 'qwen3:32b')
    """
    name, _, model = text.partition(":")
    _class_of(name)
    if not model.strip():
        raise InputError(f"{text!r} names no model; write {name}:MODEL")
    return name, model.strip()
