"""A Spark session for the tests of this folder, and seeded random samples."""

from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from spark.session import session
from testbeds.protocol import SAMPLE_SCHEMA


@pytest.fixture(scope="session")
def spark() -> SparkSession:
    return session()


@pytest.fixture
def random_samples() -> Callable[..., pa.Table]:
    """Makes samples of a source, a stateful and a stateless operator, with idle tasks and unread state among them."""

    def make(seed: int, runs: int = 2, intervals: int = 6) -> pa.Table:
        random = np.random.default_rng(seed)
        rows = [
            _sample(random, f"r{run}", operator, task, step)
            for run in range(runs)
            for operator in ("bids", "window", "sink")
            for task in range(int(random.integers(1, 5)))
            for step in range(intervals)
        ]
        return pa.Table.from_pylist(rows, SAMPLE_SCHEMA)

    return make


def _sample(random: np.random.Generator, run: str, operator: str, task: int, step: int) -> dict[str, object]:
    busy, backpressured, idle, _ = (5.0 * random.dirichlet([2.0, 1.0, 1.0, 0.01])).tolist()
    works = not (operator == "sink" and task == 3)  # a task that never gets a record
    reads = float(random.integers(0, 1000)) if operator == "window" else 0.0
    hits = float(np.floor(reads * random.random()))
    return {
        "run": run,
        "job": "q",
        "operator": operator,
        "task": task,
        "worker": f"tm-{task}",
        "phase": ("warmup", "ramp", "observe", "profile")[int(random.integers(0, 4))] if step else "observe",
        "time_s": 5.0 * (step + 1),
        "interval_s": 5.0,
        "records_in": float(random.lognormal(10.0, 2.0)) if works else 0.0,
        "records_out": float(random.lognormal(10.0, 2.0)) if works else 0.0,
        "bytes_out": float(random.lognormal(15.0, 2.0)) if works else 0.0,
        "busy_s": busy if works else 0.0,
        "backpressured_s": backpressured,
        "idle_s": idle if works else 5.0 - backpressured,
        "cpu_s": busy * 1.1 if works else 0.0,
        "state_read_bytes": 120.0 * reads,
        "state_written_bytes": 80.0 * reads,
        "cache_hits": hits,
        "cache_misses": reads - hits,
        "state_latency_s": float(random.random() * 1e-3) if operator == "window" else None,
        "lag_records": float(random.integers(0, 100)) if operator == "bids" else None,
    }
