"""Tasks for another rate, and the capacity model of an observed job."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from models.capacity.diagnosis.facts import BoundFacts, OperatorFacts
from models.capacity.growth.twin import TwinCurves
from models.capacity.observed.scaling import ObservedScaling
from models.errors import Infeasible
from models.plan.parts import Interval

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


def test_a_slower_task_with_as_many_records_has_no_hot_key() -> None:
    """Two tasks, 66 % and 54 % busy with as many records: each is taken as slow as the first, so that their work is 1.32 at
    1,000 records/s and 5.94 at 4,500. A hot key of 10 % would need 5.4 (0.1 + 0.9 / p) <= 1, which is 11 tasks."""
    slower = seen("map", 2, 0.6, 0.66).model_copy(update={"fullest_share": Interval(value=0.5, low=0.5, high=0.5)})
    assert slower.hot_share == 0.0
    assert slower.work == pytest.approx(1.32)
    assert seen("map", 2, 0.6, 0.66).hot_share == pytest.approx(0.1)
    assert scaling(slower).tasks(2000.0)["map"] == 3
    assert scaling(slower).tasks(4500.0)["map"] == 6
    assert scaling(seen("map", 2, 0.6, 0.66)).tasks(4500.0)["map"] == 11
    assert scaling(slower).full_at(slower, 2) == pytest.approx(1000 / 0.66)


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


def test_each_task_goes_to_the_vertex_that_is_full_first() -> None:
    """A task of the map takes 1,000 / 1.5 = 667 records/s, one of the sink 1,000: 667, then 1,000 by the sink, 1,333 by two
    tasks of the map, 2,000 by three. Then both are full, so that a sixth task alone brings nothing."""
    of = scaling(seen("map", 2, 0.75), seen("sink", 2, 0.5))
    takes = [of.rate_of(slots, SOURCES) for slots in range(2, 8)]
    assert takes == pytest.approx([666.7, 1000, 1333.3, 2000, 2000, 2666.7], rel=1e-4)
    model = of.model(Interval(value=4000 / 3, low=1300.0, high=1400.0), 1024.0, SOURCES)
    medians = [model.interval(1024.0, slots).value for slots in range(2, 8)]
    assert medians == pytest.approx(takes, rel=0.02)


def test_tasks_of_sources_count_as_none_but_limit_the_rate() -> None:
    """A source task is full at 500 records/s. With a limit of three, 1,500 is the most, whatever the map has."""
    facts = BoundFacts(
        rate=1000.0, measured=True, operators=(seen("source", 3, 2 / 3, is_source=True), seen("map", 2, 0.5))
    )
    assert ObservedScaling(facts, {}).rate_of(3, SOURCES) == pytest.approx(3000.0)
    limited = ObservedScaling(facts, {"source": 3})
    assert [limited.rate_of(slots, SOURCES) for slots in (1, 2, 3)] == pytest.approx([1000.0, 1500.0, 1500.0])
    model = limited.model(Interval(value=1500.0, low=1400.0, high=1600.0), 1024.0, SOURCES)
    assert model.interval(1024.0, 50).value == pytest.approx(1500.0, rel=0.02)


@pytest.mark.slow
def test_large_jobs_are_looked_at_in_steps_of_a_few_per_cent() -> None:
    of = scaling(seen("map", 400, 0.5))
    model = of.model(Interval(value=2000.0, low=1999.0, high=2001.0), 1024.0, SOURCES)
    assert model.interval(1024.0, 811).value == pytest.approx(811 * 5.0, rel=0.02)
    assert of.rate_of(811, SOURCES) == pytest.approx(811 * 5.0)
    (curves,) = (one.predicts for one in model.components)
    assert isinstance(curves, TwinCurves)
    assert len(curves.curve.task_slots) < 1000


@given(st.floats(0.05, 1.0), st.integers(1, 40), st.floats(0.1, 50.0))
def test_the_fewest_tasks_are_neither_too_few_nor_one_too_many(busy: float, tasks: int, times: float) -> None:
    work = busy * tasks * times
    found = scaling(seen("map", tasks, busy)).tasks(1000.0 * times)["map"]
    assert work / found <= 1 + 1e-5
    assert found == 1 or work / (found - 1) > 1 - 1e-5
    assert found <= math.ceil(work) + 1
