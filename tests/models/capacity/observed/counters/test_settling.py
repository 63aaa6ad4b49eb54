"""Which rounds of a young job count: records cost more until Java has compiled its code."""

from collections.abc import Sequence

import pytest

from known_answers.counted import Doing, Vertex, added, job_counts
from models.capacity.observed.counters.counts import JobCounts
from models.capacity.observed.counters.intervals import intervals
from models.capacity.observed.counters.settling import settled, still_falling
from models.capacity.observed.observing import observe
from models.capacity.observed.surroundings import Surroundings, VertexLink
from models.dataflow import Partitioning

ABOUT = Surroundings(
    name="a job", id="1", edges=[VertexLink("id-source", "id-step", Partitioning.REBALANCE)], takes_checkpoints=True
)


def readings_of(busy: Sequence[float], ran_s: float = 20.0) -> list[JobCounts]:
    """100 records/s through a source that is busy for 10 %, and a step for these shares of ten seconds, one after the other;
    before the first of them the tasks have run for `ran_s`."""
    found = [job_counts(_vertices(busy[0]), ran_s)]
    for share in busy:
        found.append(added(found[-1], job_counts(_vertices(share), 10.0)))
    return found


def _vertices(busy: float) -> list[Vertex]:
    source = Vertex("source", [Doing(100, 100, busy=0.1)], is_source=True)
    return [source, Vertex("step", [Doing(100, 100, busy=busy)])]


def kept(readings: Sequence[JobCounts]) -> int:
    """Rounds that count."""
    return len({one.ended_s for one in settled(readings, intervals(readings))})


def test_dear_rounds_at_the_beginning_are_left_out() -> None:
    """In the end 100 records cost 0.1 + 0.2 s; in the first round they cost 0.9 s (3.0 times that), then 0.5 s (1.7 times)."""
    young = readings_of([0.8, 0.4, 0.2, 0.2, 0.2, 0.2])
    assert kept(young) == 4
    seen = observe(young, ABOUT)
    # A second of its time takes 100 / 0.2 records; over all rounds it would be 600 / 2.0 = 300.
    assert seen.vertices[1].true_rate == pytest.approx(500)
    assert seen.capacity is not None and seen.capacity.mst.value == pytest.approx(500)
    assert any("first 2 of its readings" in remark for remark in seen.remarks)


def test_a_job_that_has_run_for_long_has_nothing_to_compile() -> None:
    """Its records may cost more for a while as their content changes: all rounds count."""
    old = readings_of([0.8, 0.4, 0.2, 0.2, 0.2, 0.2], ran_s=301.0)
    assert kept(old) == 6
    assert observe(old, ABOUT).vertices[1].true_rate == pytest.approx(300)


@pytest.mark.parametrize("busy", [[0.2] * 6, [0.22, 0.2, 0.21, 0.2, 0.22, 0.2], [0.2, 0.2, 0.6, 0.6, 0.2, 0.2]])
def test_rounds_that_are_dear_later_or_by_little_count(busy: list[float]) -> None:
    assert kept(readings_of(busy)) == 6


def test_at_most_half_of_the_rounds_are_left_out() -> None:
    """The median of the later three is 0.4: the fourth costs 0.9 / 0.5 = 1.8 of the end, the fifth 1.0."""
    assert kept(readings_of([3.2, 2.4, 1.6, 0.8, 0.4, 0.2])) == 2


def test_costs_that_still_fall_are_stated() -> None:
    """Four rounds cost more by a tenth than the median of the last three, 0.1 + 0.3 s; of the two that are left, the first
    costs 0.4 s and the second 0.3 s."""
    falling = readings_of([0.5, 0.45, 0.4, 0.35, 0.3, 0.2])
    assert still_falling(falling, intervals(falling)) == pytest.approx(0.25)
    assert any("25% cheaper while the job was observed" in remark for remark in observe(falling, ABOUT).remarks)
    settled_ones = readings_of([0.8, 0.4, 0.2, 0.2, 0.2, 0.2])
    assert still_falling(settled_ones, intervals(settled_ones)) is None


def test_two_rounds_have_no_beginning() -> None:
    assert kept(readings_of([0.8, 0.2])) == 2
