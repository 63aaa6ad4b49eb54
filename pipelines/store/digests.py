"""SHA-256 of a value's content, independent of its formatting."""

import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import BaseModel

from models.schema import Format

_EXACT_INTEGERS = 2**53
"""Below this, every JSON reader treats a whole float and the integer as the same number."""


def digest(value: BaseModel | Mapping[str, Any] | Sequence[Any]) -> str:
    """SHA-256, in hex, of the canonical JSON of `value`.

    Raises:
        TypeError: it holds a value that JSON does not have.
        ValueError: it holds a number that is infinite or not a number.
    """
    return hashlib.sha256(canonical_json(value).encode()).hexdigest()


def digest_bytes(content: bytes) -> str:
    """SHA-256, in hex, of a file that is not JSON."""
    return hashlib.sha256(content).hexdigest()


def canonical_json(value: Any) -> str:
    """JSON with sorted keys, no spaces, and whole numbers without a fraction, in the manner of RFC 8785.

    The same content gives the same text after any tool has read it and written it again.
    """
    return json.dumps(_plain(value), sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def _plain(value: Any) -> Any:
    if isinstance(value, BaseModel):
        return _plain(value.model_dump(mode="json", by_alias=True, exclude=_outside(value)))
    if isinstance(value, Mapping):
        return {_name(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, float) and value.is_integer() and math.fabs(value) < _EXACT_INTEGERS:
        return int(value)
    return value


def _outside(value: BaseModel) -> Mapping[str, Any] | None:
    return value.OUTSIDE_DIGEST if isinstance(value, Format) else None


def _name(key: Any) -> str:
    if not isinstance(key, str):
        raise TypeError(f"names in JSON must be text, but got {key!r}; turn it into text first")
    return key
