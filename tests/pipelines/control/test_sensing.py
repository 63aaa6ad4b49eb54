"""What the autopilot sees of a job."""

from collections.abc import Sequence

import pytest

from flink.steered import COUNT, SINK, SOURCE, SimulatedClock, SteeredFlink, SteeredJob
from flink_client.rest.answers import VertexEdge
from flink_client.rest.client import FlinkRest
from pipelines.control.sensing import Sensor, Sight, known_rates, record, sole_senders


def edge(upstream: str, downstream: str, strategy: str = "HASH") -> VertexEdge:
    return VertexEdge(upstream, downstream, strategy)


@pytest.mark.parametrize(
    ("edges", "senders"),
    [
        pytest.param([edge("a", "b"), edge("b", "c", "FORWARD")], {"b": ["a"], "c": ["b"]}, id="a line"),
        pytest.param([edge("a", "c"), edge("b", "c", "REBALANCE")], {"c": ["a", "b"]}, id="a join"),
        pytest.param([edge("a", "b"), edge("a", "c"), edge("b", "d")], {"d": ["b"]}, id="two outputs count together"),
        pytest.param([edge("a", "b", "BROADCAST")], {}, id="all tasks get a copy"),
        pytest.param([edge("a", "c"), edge("b", "c", "BROADCAST")], {}, id="one input is a copy"),
        pytest.param([edge("a", "b"), edge("a", "b")], {}, id="joined with itself"),
    ],
)
def test_what_is_in_flight_is_known_where_all_of_it_is_sent_to_one_vertex_once(
    edges: Sequence[VertexEdge], senders: dict[str, list[str]]
) -> None:
    assert sole_senders(edges) == senders


def test_source_tasks_without_a_partition_have_nothing_waiting() -> None:
    """Two source tasks read a topic of one partition: the second reports nothing, and more would be of no use."""
    clock = SimulatedClock()
    tasks = {SOURCE: 2, COUNT: 1, SINK: 1}
    job = SteeredJob(clock, partitioned=True, tasks=tasks, rate=lambda t: 1000.0, per_task=400.0)
    with SteeredFlink(job) as flink, FlinkRest(flink.url) as rest:
        sensor = Sensor(rest, job.id, frozenset(), clock)

        def look() -> Sight:
            clock.sleep(10.0)
            return sensor.look()

        meter = sensor.meter(look())
        seen = look()
        record(meter, seen)
        read = meter.read()
        assert read is not None and seen.activity is not None
        source = known_rates(read, seen, frozenset()).operators[seen.names[SOURCE]]
    assert seen.activity.lag_unknown == frozenset()
    # 600 records/s more arrive than one counting task takes.
    assert source.lag_records == pytest.approx(20 * 600.0)
    assert source.partitions == 1
    assert source.at_most(5) == 1
