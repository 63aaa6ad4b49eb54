"""The setting by which a cluster refreshes its metrics, as Flink reads it."""

import pytest

from flink_client.metrics.refreshing import REFRESH, refresh_s
from models.errors import InvalidInput


@pytest.mark.parametrize(
    ("stated", "seconds"),
    [
        (None, 10.0),
        ("250", 0.25),
        ("500ms", 0.5),
        ("100 MILLIS", 0.1),
        ("10 s", 10.0),
        ("30sec", 30.0),
        ("2 min", 120.0),
        (" 1 m ", 60.0),
        ("1 hour", 3600.0),
    ],
)
def test_the_setting_is_read_as_flink_does(stated: str | None, seconds: float) -> None:
    assert refresh_s({} if stated is None else {REFRESH: stated}, "http://f:8081") == pytest.approx(seconds)


@pytest.mark.parametrize("stated", ["0", "0 s", "", "10 fortnights", "-1 s"])
def test_a_cluster_that_refreshes_no_metrics_is_refused(stated: str) -> None:
    with pytest.raises(InvalidInput, match=f"{REFRESH} of Flink at http://f:8081, .* must be a time above 0, but is"):
        refresh_s({REFRESH: stated}, "http://f:8081")
