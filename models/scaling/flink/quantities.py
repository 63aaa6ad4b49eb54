"""Durations and memory sizes as Flink's configuration writes them: "5 min", "30 gb"."""

import re
from typing import Annotated, Any, Final

from pydantic import BeforeValidator, Field

_SECONDS: Final = {
    1e-3: ("ms", "milli", "millis", "millisecond", "milliseconds"),
    1.0: ("s", "sec", "secs", "second", "seconds"),
    60.0: ("min", "m", "minute", "minutes"),
    3600.0: ("h", "hour", "hours"),
    86400.0: ("d", "day", "days"),
}
_BYTES: Final = {
    1 << 40: ("t", "tb", "tebibytes"),
    1 << 30: ("g", "gb", "gibibytes"),
    1 << 20: ("m", "mb", "mebibytes"),
    1 << 10: ("k", "kb", "kibibytes"),
    1: ("b", "bytes"),
}
_SECONDS_OF: Final = {name: seconds for seconds, names in _SECONDS.items() for name in names}
_BYTES_OF: Final = {name: size for size, names in _BYTES.items() for name in names}


def _in_units(value: Any, units: dict[str, float] | dict[str, int], what: str) -> Any:
    """Convert a text with a unit to a number; other values are left to the field's type."""
    found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([A-Za-z]+)\s*", value) if isinstance(value, str) else None
    if found is None:
        return value
    number, unit = found.groups()
    if unit.lower() not in units:
        raise ValueError(f"{what} must end in one of {', '.join(units)}, but got {value!r}")
    return float(number) * units[unit.lower()]


Seconds = Annotated[
    float,
    BeforeValidator(lambda value: _in_units(value, _SECONDS_OF, "a duration")),
    Field(ge=0, allow_inf_nan=False),
]
"""A duration: a number of seconds, or a text with a unit such as "5 min"."""

Bytes = Annotated[int, BeforeValidator(lambda value: _in_units(value, _BYTES_OF, "a memory size")), Field(ge=0)]
"""A memory size: a number of bytes, or a text with a unit (powers of 1024) such as "30 gb"."""


def memory_size(size: int) -> str:
    """Bytes in the largest unit that holds a whole number of them, as Flink writes them: "13760 kb"."""
    if size:
        for unit, names in _BYTES.items():
            if size % unit == 0:
                return f"{size // unit} {names[1]}"
    return f"{size} bytes"
