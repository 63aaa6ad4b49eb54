"""The load of a task is its unit cost times its share of the rate; figures by hand."""

import pytest

from models.dataflow import Edge, Partitioning
from models.job import Cost, Job, Kind, Operator
from models.planning.physical.expansion import UnitCost, catalogue_unit_costs, expand


@pytest.fixture
def job() -> Job:
    cost = Cost(cpu_s=1e-3, state_read_bytes=30, state_write_bytes=20, bytes_out=100)
    return Job(
        name="tiny",
        description="One map.",
        figures_from="made for tests",
        operators=(
            Operator(name="source", kind=Kind.SOURCE, cost=cost, figures_from="made for tests"),
            Operator(name="map", cost=cost, selectivity=0.5, figures_from="made for tests"),
            Operator(name="sink", kind=Kind.SINK, cost=cost, selectivity=0, figures_from="made for tests"),
        ),
        edges=(
            Edge(upstream="source", downstream="map", partitioning=Partitioning.FORWARD),
            Edge(upstream="map", downstream="sink", partitioning=Partitioning.FORWARD),
        ),
    )


def test_catalogue_costs_are_per_record_in(job: Job) -> None:
    costs = catalogue_unit_costs(job)
    assert costs["source"] == UnitCost(cpu_s=1e-3, state_bytes=50, bytes_out=100)
    assert costs["map"] == UnitCost(cpu_s=1e-3, state_bytes=50, bytes_out=50)  # half a record out of 100 bytes
    assert costs["sink"].bytes_out == 0


def test_a_record_is_sent_over_each_edge_that_it_takes(job: Job) -> None:
    fifth = Edge(upstream="source", downstream="sink", partitioning=Partitioning.HASH, share=0.2)
    divided = job.model_copy(update={"edges": (*job.edges, fifth)})
    assert catalogue_unit_costs(divided)["source"].bytes_out == pytest.approx(120)  # 100 bytes to map, a fifth to sink


def test_a_task_carries_its_share_of_the_rate(job: Job) -> None:
    rates = {"source": 1000.0, "map": 1000.0, "sink": 500.0}
    dataflow = expand(job, {"source": 2, "map": 4, "sink": 4}, rates, catalogue_unit_costs(job), memory_mb_per_task=256)
    source, mapper, sink = dataflow.operators
    assert (source.cpu, source.io, source.net) == pytest.approx((0.5, 25_000, 50_000))
    assert (mapper.cpu, mapper.io, mapper.net) == pytest.approx((0.25, 12_500, 12_500))
    assert (sink.cpu, sink.net, sink.memory_mb) == pytest.approx((0.125, 0, 256))
    assert dataflow.tasks == 10


def test_forward_stays_between_equal_parallelism_only(job: Job) -> None:
    rates = dict.fromkeys(("source", "map", "sink"), 1.0)
    dataflow = expand(job, {"source": 2, "map": 4, "sink": 4}, rates, catalogue_unit_costs(job), 0)
    assert [e.partitioning for e in dataflow.edges] == [Partitioning.REBALANCE, Partitioning.FORWARD]
