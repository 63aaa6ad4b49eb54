import pytest

from models.errors import InvalidInput
from pipelines.cli.options.duration import seconds_of


def test_durations() -> None:
    assert [seconds_of(text, 1.0) for text in ("90", "90s", "1.5m", "2h")] == [90, 90, 90, 7200]
    with pytest.raises(InvalidInput, match="at least 20 s, but got '5s'"):
        seconds_of("5s", 20.0)
