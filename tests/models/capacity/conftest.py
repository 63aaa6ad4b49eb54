"""StreamBed's published measurements and BIDS2 instances (tests/data/streambed)."""

import csv
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from models.capacity.growth.dataset import Dataset


@pytest.fixture(scope="session")
def published(root: Path) -> Callable[[str, int], Dataset]:
    """The first rows of a query's search, as a data set."""

    def read(query: str, rows: int) -> Dataset:
        with (root / "tests" / "data" / "streambed" / f"search_{query}.csv").open() as file:
            table = list(csv.DictReader(file))[:rows]
        columns = ("tm_memory_mb", "task_slots", "mst_events_per_s")
        memory_mb, task_slots, mst = (np.array([float(row[c]) for row in table]) for c in columns)
        return Dataset(memory_mb, task_slots, mst)

    return read


@pytest.fixture(scope="session")
def bids2_vectors(root: Path) -> list[dict[str, Any]]:
    vectors: list[dict[str, Any]] = json.loads((root / "tests/data/streambed/bids2_vectors.json").read_text())
    return vectors
