"""Tasks for another rate, and the capacity model of an observed job."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from models.capacity.diagnosis.facts import BoundFacts, OperatorFacts
from models.capacity.observed.scaling import ObservedScaling
from models.errors import Infeasible
from models.plan import Interval

SOURCES = frozenset({"source"})


def seen(name: str, tasks: int, busy: float, fullest: float | None = None, *, is_source: bool = False) -> OperatorFacts:
    most = busy if fullest is None else fullest
    return OperatorFacts(
        name=name,
        parallelism=tasks,
        is_source=is_source,
        busyness=busy,
        fullest_busyness=most,
        peak_busyness=most,
        backpressure=0.0,
    )


def scaling(*operators: OperatorFacts, limits: dict[str, int] | None = None) -> ObservedScaling:
    facts = BoundFacts(rate=1000.0, measured=True, operators=(seen("source", 1, 0.2, is_source=True), *operators))
    return ObservedScaling(facts, limits or {})


def test_evenly_loaded_tasks_grow_with_the_rate() -> None:
    """Four tasks busy for 60 % do 2.4 tasks' work at 1,000 records/s, so 7.2 tasks' at 3,000."""
    assert scaling(seen("map", 4, 0.6)).tasks(3000.0) == {"source": 1, "map": 8}
    assert scaling(seen("map", 4, 0.6)).tasks(1000.0) == {"source": 1, "map": 3}


def test_a_hot_key_stays_with_one_task() -> None:
    """Two tasks, 80 % and 40 % busy: work 1.2, a third of it (h) with one task. At 2,000 records/s it is busy for 0.8 by that
    alone, and 1.6 / p more: eight tasks."""
    uneven = scaling(seen("count", 2, 0.6, 0.8))
    assert uneven.facts.operator("count").hot_share == pytest.approx(1 / 3)
    assert uneven.tasks(2000.0)["count"] == 8
    with pytest.raises(Infeasible, match=r"'count' gets 33% .* full at 2,500 records/s however many tasks"):
        uneven.tasks(2600.0)


def test_a_limit_of_tasks_is_named() -> None:
    with pytest.raises(Infeasible, match="needs 8 tasks for 3,000 records/s, but may have 6"):
        scaling(seen("map", 4, 0.6), limits={"map": 6}).tasks(3000.0)


def test_the_model_begins_at_what_was_seen_and_widens() -> None:
    """The fullest task is full at 1,000 / 0.5 = 2,000 records/s, and that was seen: four tasks take it."""
    of = scaling(seen("map", 4, 0.5))
    model = of.model(Interval(value=2000.0, low=1900.0, high=2100.0), 1024.0, SOURCES)
    here, far = model.interval(1024.0, 4), model.interval(1024.0, 40)
    assert here.value == pytest.approx(2000.0, rel=0.02)
    assert far.value == pytest.approx(20_000.0, rel=0.05)
    assert far.high / far.low > 1.5 * here.high / here.low


def test_idle_vertices_beside_the_tight_one_do_not_count() -> None:
    """Ten tasks of a sink that do nothing do not make the job take less for each task."""
    wide = scaling(seen("map", 2, 0.9), seen("sink", 10, 0.01))
    model = wide.model(Interval(value=1111.0, low=1000.0, high=1222.0), 1024.0, SOURCES)
    # 1.8 x 4 tasks of the map, and one of the sink.
    assert model.interval(1024.0, 9).value == pytest.approx(4 * 1111.0, rel=0.1)


@given(st.floats(0.05, 1.0), st.integers(1, 40), st.floats(0.1, 50.0))
def test_the_fewest_tasks_are_neither_too_few_nor_one_too_many(busy: float, tasks: int, times: float) -> None:
    work = busy * tasks * times
    found = scaling(seen("map", tasks, busy)).tasks(1000.0 * times)["map"]
    assert work / found <= 1 + 1e-5
    assert found == 1 or work / (found - 1) > 1 - 1e-5
    assert found <= math.ceil(work) + 1
