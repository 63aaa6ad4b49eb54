"""Plans of word count for small clusters, and a server that answers as Flink does."""

from collections.abc import Callable, Iterator

import pytest

from flink.server import FakeFlink, word_count_plan
from models.plan.content import PlanContent

MakePlan = Callable[..., PlanContent]


@pytest.fixture
def make_plan() -> MakePlan:
    """Makes a plan of word count from worker -> operator -> tasks, for a rate of sentences."""
    return word_count_plan


@pytest.fixture
def flink() -> Iterator[FakeFlink]:
    with FakeFlink() as made:
        yield made
