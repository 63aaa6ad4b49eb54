"""The load of a task is its unit cost times its share of the rate; figures by hand."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from models.cluster import Cluster
from models.dataflow import Edge, Partitioning
from models.job import Cost, Job, Kind, Operator, records_in_per_source_record
from models.placement.cost import worker_loads
from models.placement.problem import Problem
from models.planning.physical.expansion import UnitCost, catalogue_unit_costs, expand
from testbeds.simulator.layout.wiring import Wiring
from testbeds.simulator.settings import Physics


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


def fan_out(*edges: tuple[Partitioning, float]) -> Job:
    """A source of 100 bytes a record, and a sink for each of its edges."""
    given = {"figures_from": "made for tests"}
    sinks = [
        Operator(name=f"sink-{i}", kind=Kind.SINK, cost=Cost(cpu_s=1e-6), selectivity=0, **given)
        for i in range(len(edges))
    ]
    return Job(
        name="fan",
        description="A source that feeds sinks.",
        operators=(Operator(name="source", kind=Kind.SOURCE, cost=Cost(cpu_s=1e-6, bytes_out=100), **given), *sinks),
        edges=tuple(
            Edge(upstream="source", downstream=sink.name, partitioning=how, share=share)
            for sink, (how, share) in zip(sinks, edges, strict=True)
        ),
        **given,
    )


def test_each_of_several_edges_takes_all_records_and_a_broadcast_one_a_copy_for_each_task() -> None:
    job = fan_out((Partitioning.HASH, 1.0), (Partitioning.BROADCAST, 0.5))
    tasks, rates = {"source": 1, "sink-0": 2, "sink-1": 4}, {"source": 10.0, "sink-0": 10.0, "sink-1": 20.0}
    dataflow = expand(job, tasks, rates, catalogue_unit_costs(job), 0)
    assert dataflow.operators[0].net == pytest.approx(1000 + 4 * 500)
    assert [e.share for e in dataflow.edges] == pytest.approx([1 / 3, 2 / 3])


@st.composite
def placed_fans(draw: st.DrawFn) -> tuple[Job, dict[str, np.ndarray]]:
    """A job, and the worker of each task, of three. Key groups make hash edges uneven, which the cost leaves out."""
    kinds = st.sampled_from([Partitioning.REBALANCE, Partitioning.BROADCAST])
    job = fan_out(*draw(st.lists(st.tuples(kinds, st.sampled_from([0.25, 0.5, 1.0])), min_size=1, max_size=3)))
    workers = st.lists(st.integers(0, 2), min_size=1, max_size=4)
    return job, {name: np.array(draw(workers)) for name in job.order}


@given(placed_fans())
def test_the_network_load_of_a_worker_is_that_of_the_simulator(case: tuple[Job, dict[str, np.ndarray]]) -> None:
    job, placed = case
    tasks = {name: len(workers) for name, workers in placed.items()}
    rates = {name: 100.0 * ratio for name, ratio in records_in_per_source_record(job).items()}
    dataflow = expand(job, tasks, rates, catalogue_unit_costs(job), 0)
    problem = Problem.of(dataflow, Cluster.model_validate({"count": 3, "slots": 16}))
    counts = np.array([[np.sum(placed[name] == worker) for name in problem.operators] for worker in range(3)])
    per_record = Wiring(job, tasks, placed, [np.inf] * 3, Physics()).remote_bytes("source")
    sent = np.bincount(placed["source"], per_record * rates["source"] / tasks["source"], minlength=3)
    assert worker_loads(problem, counts)[2] == pytest.approx(sent)
