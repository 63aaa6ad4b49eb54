"""Curves have few points, and keep the peaks."""

import numpy as np
import pyarrow as pa
import pytest

from pipelines.arena.replays.cell import TRACE_SCHEMA, RescaleRecord
from pipelines.arena.report.curves import Curves, curves, seconds_per_point


def trace(length: int, **columns: list[float | None]) -> pa.Table:
    """Intervals of 5 s in which nothing happens but what is given."""
    rows = {field.name: [0] * length for field in TRACE_SCHEMA} | {
        "time_s": [5.0 * (i + 1) for i in range(length)],
        "parallelism": [[("map", 1)]] * length,
        **columns,
    }
    return pa.table([pa.array(rows[f.name], type=f.type) for f in TRACE_SCHEMA], schema=TRACE_SCHEMA)


def test_of_several_intervals_the_worst_the_mean_rate_and_the_last_capacity_are_shown() -> None:
    made = curves(
        "ds2",
        trace(
            5,
            rate=[1, 2, 6, 10, 20],
            latency_s=[0, 9, 1, 2, 3],
            lag_records=[5, 4, 3, 2, 1],
            tasks=[1, 3, 2, 2, 4],
            memory_mb=[0, 0, 2048, 1024, 512],
            capacity=[7, 8, None, None, 30],
        ),
        (),
        most=2,
    )
    assert made.minutes.tolist() == pytest.approx([0.25, 25 / 60])
    assert made.rate.tolist() == [3, 15]
    assert made.latency_s.tolist() == [9, 3]
    assert made.lag_records.tolist() == [5, 2]
    assert made.tasks.tolist() == [3, 4]
    assert made.memory_gib.tolist() == [2, 1]
    assert np.isnan(made.capacity[0]) and made.capacity[1] == 30


@pytest.mark.parametrize(("length", "points", "seconds"), [(600, 600, 5), (601, 301, 10), (51_840, 596, 435)])
def test_a_curve_of_any_length_fits_the_screen(length: int, points: int, seconds: float) -> None:
    assert len(curves("ds2", trace(length), ()).minutes) == points
    assert seconds_per_point(length) == seconds


def test_a_mark_says_what_was_done_and_why() -> None:
    done = RescaleRecord(
        time_s=90, downtime_s=31, state_mb=5, tasks=7, parallelism={"map": 7}, memory_mb={}, reason="It is too busy"
    )
    refused = done.model_copy(update={"refused": True, "note": "no worker has room"})
    made: Curves = curves("ds2", trace(3), (done, refused))
    assert [(m.minute, m.tasks, m.refused) for m in made.marks] == [(1.5, 7, False), (1.5, 7, True)]
    assert made.marks[0].text == "7 tasks, down for 31 s. It is too busy"
    assert made.marks[1].text == "refused. It is too busy. no worker has room"
