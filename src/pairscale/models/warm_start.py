"""What a later fit starts from, as bytes: a run that is taken up again draws the same as one that never paused."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from pairscale.core.errors import InputError
from pairscale.models.bayes.coordinates import Learned
from pairscale.models.bayes.model import JudgeParameters
from pairscale.models.bayes.sampler import Warm, warm_of

Array: TypeAlias = "npt.NDArray[Any]"

_HEAD = "head"
_RECORDS: dict[str, Any] = {"Warm": Warm, "JudgeParameters": JudgeParameters, "Learned": Learned}
_BROKEN = (zipfile.BadZipFile, OSError, EOFError, ValueError, KeyError, TypeError)


def warm_to_bytes(fit: Any) -> bytes | None:
    """The start that a fit gives the next one; None when it gives none."""
    warm = warm_of(fit)
    if warm is None:
        return None
    arrays: dict[str, Array] = {}

    def plain(value: Any) -> Any:
        """A record or array as JSON has it, arrays set aside: whatever fields the sampler needs, now or later."""
        if isinstance(value, np.ndarray):
            name = f"array{len(arrays)}"
            arrays[name] = value
            return {"array": name}
        return {
            "kind": type(value).__name__,
            "fields": {entry.name: getattr(value, entry.name) for entry in fields(value)},
        }

    return packed({"start": json.dumps(warm, default=plain)}, **arrays)


def warm_from_bytes(data: bytes) -> Warm:
    """The way back; ``fit_btl`` takes it as ``warm`` and draws the same, bit for bit.

    Raises:
        InputError: when these bytes were not packed by :func:`packed`.
    """
    head, arrays = unpacked(data, "the start of a fit")

    def whole(value: dict[str, Any]) -> Any:
        """The way back from ``plain``."""
        if "kind" in value:
            return _RECORDS[value["kind"]](**value["fields"])
        if "array" in value:
            return arrays[value["array"]]
        return value

    start: Warm = json.loads(head["start"], object_hook=whole)
    return replace(start, ids=tuple(start.ids))


def packed(head: Mapping[str, Any], **arrays: Array) -> bytes:
    """A few plain values and arrays as bytes: the same ones give the same bytes."""
    # JSON keeps every id, whatever its characters, and every bit of a number.
    text = np.frombuffer(json.dumps(head).encode(), dtype=np.uint8)
    file = io.BytesIO()
    np.savez(file, allow_pickle=False, **{_HEAD: text, **arrays})
    return file.getvalue()


def unpacked(data: bytes, what: str) -> tuple[dict[str, Any], dict[str, Array]]:
    """The way back from :func:`packed`.

    Raises:
        InputError: when they are not such bytes; the message says ``what`` they should have been.
    """
    try:
        with np.load(io.BytesIO(data), allow_pickle=False) as held:
            arrays = {name: held[name] for name in held.files}
        head = json.loads(arrays.pop(_HEAD).tobytes())
    except _BROKEN as error:
        raise InputError(f"these {len(data):,} bytes are not {what}: {error}") from None
    return head, arrays
