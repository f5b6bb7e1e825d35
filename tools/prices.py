"""Write ``src/pairscale/providers/data/prices.json`` from two published tables of prices, compared row by row.

Run it in an environment of its own that holds ``genai-prices`` and the unpacked wheel of ``litellm``::

    python tools/prices.py --litellm UNPACKED/litellm --litellm-version 1.108.4 --as-of 2026-10-26

The date is the newest one that ``genai-prices`` records in its data. A row needs an input and an output price in
``genai-prices``. Where ``litellm`` has the same model with other prices, the row is left out and listed: a contradicted
price is none. Rows cover many names, such as those of regions; a name for which ``litellm`` has other prices is taken
out of the pattern. What is not about text (speech, images, embeddings) is left out, too.
"""

import argparse
import datetime as dt
import json
import re
from importlib.metadata import version
from pathlib import Path

from genai_prices import data

TARGET = Path(__file__).parent.parent / "src/pairscale/providers/data/prices.json"
PROVIDERS = {  # theirs: ours, and what litellm puts before the model
    "openai": ("openai", ""),
    "anthropic": ("anthropic", ""),
    "google": ("gemini", "gemini/"),
    "together": ("together", "together_ai/"),
    "deepseek": ("deepseek", "deepseek/"),
    "groq": ("groq", "groq/"),
    "x-ai": ("xai", "xai/"),
    "mistral": ("mistral", "mistral/"),
    "openrouter": ("openrouter", "openrouter/"),
    "aws": ("bedrock", ""),
}
VENDORS = r"^(openai|anthropic|google|deepseek|x-ai|mistralai|qwen|meta-llama|moonshotai|z-ai)/"  # at OpenRouter
OTHER_KINDS = re.compile(
    r"tts|audio|image|embed|realtime|live|transcri|whisper|moderation|search|computer|research|omni|ocr|voxtral|voice"
    r"|guard|sonic|veo|robotics|lyria|:free|orpheus|nano-banana|translate|cyber|rosalind|multi-agent|build|davinci"
    r"|turbo-instruct|:extended",
    re.IGNORECASE,
)
OF_OTHERS = {"google": r"^(?!gemini|gemma|learnlm)", "openai": "^gpt-oss"}  # served elsewhere
ROUNDED = 0.025  # vendors round the prices of cached tokens
NAMES = {"input_mtok": "input", "output_mtok": "output", "cache_read_mtok": "cached", "cache_write_mtok": "written"}
LITELLM = {
    "input": "input_cost_per_token",
    "output": "output_cost_per_token",
    "cached": "cache_read_input_token_cost",
    "batch": "input_cost_per_token_batches",
}
LITELLM_NAMES = {"gemini": {"gemini"}, "together": {"together_ai"}, "bedrock": {"bedrock", "bedrock_converse"}}
NOTES = {"deepseek": "the price of peak hours, the highest; other hours cost less"}
NOTES["openrouter"] = "the listed price; the provider that a request is routed to may charge another"


def pattern(clause):
    """A clause of theirs as one regular expression, to be searched for without regard to case."""
    match type(clause).__name__:
        case "ClauseEquals":
            found = f"^{escaped(clause.equals)}$"
        case "ClauseStartsWith":
            found = f"^{escaped(clause.starts_with)}"
        case "ClauseContains":
            found = escaped(clause.contains)
        case "ClauseEndsWith":
            found = f"{escaped(clause.ends_with)}$"
        case "ClauseRegex":
            found = clause.regex
        case "ClauseOr":
            found = "|".join(pattern(one) for one in clause.or_)
        case "ClauseAnd":
            found = "^" + "".join(f"(?=.*?(?:{pattern(one)}))" for one in clause.and_)
        case kind:
            raise TypeError(kind)
    return found


def escaped(text):
    return text.lower().replace(".", r"\.").replace("+", r"\+")


def figures(price):
    """Their prices of a million tokens under our names, and the prices of long prompts."""
    found, long = {}, {}
    for theirs, ours in NAMES.items():
        value = getattr(price, theirs, None)
        if value is None:
            continue
        if hasattr(value, "base"):
            found[ours] = float(value.base)
            tier = value.tiers[0]
            long |= {"above": tier.start, ours: float(tier.price)}
        else:
            found[ours] = float(value)
    return found, long


def periods(prices, today):
    """``(from, until, price)`` of now and later; the highest where it depends on the hour."""
    if not isinstance(prices, list):
        return [(None, None, prices)], False
    dated = [(None, one.prices) for one in prices if one.constraint is None]
    dated += [(one.constraint.start_date, one.prices) for one in prices if hasattr(one.constraint, "start_date")]
    hours = [one.prices for one in prices if hasattr(one.constraint, "start_time")]
    past = [one for one in dated if one[0] is None or one[0] <= today]
    rows = [past[-1], *(one for one in dated if one[0] is not None and one[0] > today)]
    if hours:
        return [(None, None, max(hours, key=lambda one: figures(one)[0]["input"]))], True
    ends = [one[0] - dt.timedelta(days=1) for one in rows[1:]] + [None]
    starts = [None, *(one[0] for one in rows[1:])]
    return [(start, end, one[1]) for start, end, one in zip(starts, ends, rows, strict=True)], False


def shares(model, base):
    """What batches and service tiers cost of the usual price, where one share holds for input and output."""
    more, tiers = {}, {}
    for variant in model.price_variants or ():
        if len(variant.when) != 1 or (variant.constraint is not None and variant.constraint.start_date.year > 2026):
            continue
        found, _ = figures(variant.prices)
        parts = {name: round(value / base[name], 6) for name, value in found.items() if base.get(name)}
        if not {"input", "output"} <= set(parts) or parts["input"] != parts["output"]:
            continue
        share, ((key, value),) = parts["input"], variant.when.items()
        if key == "processing":
            more["batch"] = share
            if abs(parts.get("cached", 1.0 if "cached" in base else share) - share) > ROUNDED:
                more["batch_cached"] = found.get("cached", base.get("cached"))
        elif key == "service_tier" and abs(parts.get("cached", share) - share) <= ROUNDED:
            tiers[value] = share
    return more, tiers


def row_of(provider, model, today, as_of):
    ours = PROVIDERS[provider.id][0]
    spans, by_hour = periods(model.prices, today)
    now, _ = figures(spans[0][2])
    if not {"input", "output"} <= set(now) or (ours == "deepseek" and not by_hour):
        return  # no tokens of text, or a model that DeepSeek no longer serves
    more, tiers = shares(model, now)
    for start, end, price in spans:
        base, long = figures(price)
        if start is not None:
            more.pop("batch_cached", None)
        row = {"provider": ours, "model": pattern(model.match), **base, **more}
        if ours in {"openai", "anthropic", "gemini", "groq"}:
            row["tiers"] = tiers
        if long:
            row["long"] = long
        if start is not None:
            row["from"] = start.isoformat()
        if end is not None:
            row["until"] = end.isoformat()
        comments = f"{model.price_comments or ''} {provider.price_comments or ''}"
        checked = [day for day in re.findall(r"\b2026-\d\d-\d\d\b", model.price_comments or "") if day <= as_of]
        if any(word in comments for word in ("verified on", "Checked")) and checked:
            row["as_of"] = max(checked)
        row["source"] = provider.pricing_urls[0]
        if note := NOTES.get(ours):
            row["note"] = note
        yield row


def contradiction(row, known):
    """What litellm says otherwise; None when it agrees, or does not know the model."""
    for name in ("input", "output"):
        theirs = known.get(LITELLM[name])
        if theirs is not None and abs(theirs * 1e6 - row[name]) > 1e-6 * max(1, row[name]):
            return f"{name} {row[name]:g}, litellm {theirs * 1e6:g}"
    return None


def names_of(provider, prefix, second):
    """The names of a provider's models of text in litellm, each with its prices."""
    for key, known in second.items():
        of_text = known.get("mode") in {"chat", "responses"}
        if (
            of_text
            and known.get("litellm_provider") in LITELLM_NAMES.get(provider, {provider})
            and key.startswith(prefix)
        ):
            name = key.removeprefix(prefix)
            if provider != "bedrock" or "/" not in name:  # with one, the name of a region stands before it
                yield name, known


def without_contradicted_names(rows, second):
    """Take the names out of patterns for which litellm has other prices; returns what was taken out, in words."""
    left = []
    for ours, prefix in PROVIDERS.values():
        for name, known in names_of(ours, prefix, second):
            for row in rows:
                if row["provider"] != ours or not re.search(row["model"], name, re.IGNORECASE):
                    continue
                found = contradiction(row, known)
                if found is None or "from" in row:
                    break
                left.append(f"{ours}:{name}: {found}")
                row.setdefault("_without", []).append(escaped(name))
    for row in rows:
        if names := row.pop("_without", None):
            row["model"] = f"^(?!(?:{'|'.join(names)})$)(?=.*?(?:{row['model']}))"
    return left


def main():
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--litellm", type=Path, required=True)
    arguments.add_argument("--litellm-version", required=True)
    arguments.add_argument("--as-of", required=True)
    given = arguments.parse_args()
    second = json.loads((given.litellm / "model_prices_and_context_window_backup.json").read_text("utf-8"))
    today, rows, agreed, lone, left = dt.datetime.now(dt.UTC).date(), [], 0, 0, []
    for provider in data.providers:
        if provider.id not in PROVIDERS:
            continue
        for model in provider.models:
            if OTHER_KINDS.search(model.id) or re.search(OF_OTHERS.get(provider.id, "^$"), model.id):
                continue
            if provider.id == "openrouter" and not re.search(VENDORS, model.id):
                continue
            known = second.get(PROVIDERS[provider.id][1] + model.id, {})
            for row in row_of(provider, model, today, given.as_of):
                found = contradiction(row, known) if "from" not in row else None
                if found is not None:
                    left.append(f"{row['provider']}:{model.id}: {found}")
                    continue
                if "batch" not in row and known.get(LITELLM["batch"]) and "from" not in row:
                    row["batch"] = round(known[LITELLM["batch"]] * 1e6 / row["input"], 6)
                agreed, lone = agreed + bool(known), lone + (not known)
                rows.append(row)
    names = without_contradicted_names(rows, second)
    source = f"genai-prices {version('genai-prices')}, compared with litellm {given.litellm_version}"
    note = "Prices change: check them before you rely on them. `written` is for Anthropic's five-minute cache."
    head = {"as_of": given.as_of, "unit": "USD per million tokens", "source": source, "note": note}
    lines = ",\n".join(f"    {json.dumps(row, ensure_ascii=False)}" for row in rows)
    top = "".join(f"  {json.dumps(name)}: {json.dumps(value)},\n" for name, value in head.items())
    TARGET.write_text(f'{{\n{top}  "prices": [\n{lines}\n  ]\n}}\n', "utf-8")
    print(f"{len(rows)} rows, {agreed} also in litellm with the same price, {lone} not there; left out:")
    print("\n".join(f"  {line}" for line in left))
    print(f"{len(names)} names taken out of rows:")
    print("\n".join(f"  {line}" for line in names))


if __name__ == "__main__":
    main()
