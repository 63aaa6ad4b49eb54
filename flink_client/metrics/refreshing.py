"""How often a cluster refreshes the metrics of its REST interface."""

import re
from collections.abc import Mapping
from typing import Final

from models.errors import InvalidInput

REFRESH: Final = "metrics.fetcher.update-interval"
_DEFAULT: Final = "10 s"
_DURATION: Final = re.compile(r"\s*(\d+)\s*([a-z]*)\s*", re.IGNORECASE)
_LABELS: Final = {
    1e-3: ("", "ms", "milli", "millis", "millisecond", "milliseconds"),
    1.0: ("s", "sec", "secs", "second", "seconds"),
    60.0: ("min", "m", "minute", "minutes"),
    3600.0: ("h", "hour", "hours"),
}
"""Names of Flink's units by their seconds; a number alone is milliseconds."""
_SECONDS: Final = {label: seconds for seconds, labels in _LABELS.items() for label in labels}


def refresh_s(settings: Mapping[str, str], url: str) -> float:
    """How often the cluster at `url` refreshes the metrics that it reports, seconds.

    Raises:
        InvalidInput: it never does.
    """
    stated = settings.get(REFRESH, _DEFAULT)
    found = _DURATION.fullmatch(stated)
    seconds = 0.0 if found is None else float(found[1]) * _SECONDS.get(found[2].lower(), 0.0)
    if seconds <= 0:
        raise InvalidInput(
            f"the setting {REFRESH} of Flink at {url}, which says how often it fetches metrics, must be a time above 0, but is "
            f"{stated!r}; leave it out, or set it to '10 s'"
        )
    return seconds
