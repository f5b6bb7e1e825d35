"""JSON encoders that are made once, for what is written for every question."""

from __future__ import annotations

import json
from collections.abc import Callable
from json import encoder as _encoder
from typing import Any


def json_encoder(
    *,
    separators: tuple[str, str] = (",", ":"),
    sort_keys: bool = False,
    allow_nan: bool = True,
    default: Callable[[Any], Any] | None = None,
) -> Callable[[Any], str]:
    """A function that writes JSON as ``json.JSONEncoder(ensure_ascii=False, ...).encode`` does.

    ``JSONEncoder.encode`` makes a C encoder for every call, which takes as long as writing a small document.
    A document that holds itself raises a RecursionError.

    Args:
        separators: Between items, and between a name and its value.
        sort_keys: Whether names are sorted.
        allow_nan: Whether NaN and infinities are written; else they raise a ValueError.
        default: Makes something that JSON can hold out of anything else; by default that raises a TypeError.

    Example:
        >>> json_encoder()({"a": [1, None, "é"]})
        '{"a":[1,null,"é"]}'
    """
    plain = json.JSONEncoder(
        ensure_ascii=False, check_circular=False, separators=separators, sort_keys=sort_keys, allow_nan=allow_nan,
        default=default,
    )  # fmt: skip
    make: Any = getattr(_encoder, "c_make_encoder", None)
    if make is None:  # without the C part of the standard library
        return plain.encode
    between, behind_name = separators
    chunks = make(
        None, plain.default, _encoder.encode_basestring, None, behind_name, between, sort_keys, False, allow_nan
    )  # fmt: skip
    join = "".join
    return lambda value: join(chunks(value, 0))
