"""Durations on the command line, such as 90s, 3m or 1h."""

import re
from typing import Final

from models.errors import InvalidInput

LEAST_S: Final = 20.0
"""Shortest time for which a running job is observed, seconds."""
_DURATION: Final = re.compile(r"(\d+(?:\.\d+)?)\s*(s|m|h)?")
_SECONDS: Final = {"s": 1.0, "m": 60.0, "h": 3600.0, None: 1.0}


def seconds_of(text: str, least_s: float) -> float:
    """Seconds of a duration; a plain number is seconds.

    Raises:
        InvalidInput: it is no duration, or shorter than `least_s`.
    """
    found = _DURATION.fullmatch(text.strip())
    seconds = float(found[1]) * _SECONDS[found[2]] if found else 0.0
    if found is None or seconds < least_s:
        raise InvalidInput(f"a duration must be like 90s, 3m or 1h, and at least {least_s:g} s, but got {text!r:.40}")
    return seconds
