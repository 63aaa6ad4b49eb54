"""A repository that word count is deployed from, its Flink, and a plan for it."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from flink.server import FakeFlink
from on_kubernetes.deployed_repository import DeployedRepository


@pytest.fixture
def deployed(tmp_path: Path) -> DeployedRepository:
    return DeployedRepository(tmp_path)


@pytest.fixture
def flink() -> Iterator[FakeFlink]:
    """It runs each vertex of word count with one task."""
    with FakeFlink() as made:
        yield made
