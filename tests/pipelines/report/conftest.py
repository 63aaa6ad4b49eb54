"""A small plan whose figures can be checked by hand: one source, a map and a sink on two workers."""

import pytest

from models.capacity.exploration.space import ExplorationStep
from models.capacity.growth.capacity_model import CapacityModel
from models.capacity.growth.dataset import Dataset
from models.capacity.growth.regressions import fit_regression
from models.capacity.observation import Budget, Observation
from models.cluster import Cluster
from models.dataflow import Edge
from models.job import Cost, Job, Kind, Operator
from models.plan.content import Plan
from models.plan.parts import CostVector, Interval, Lineage, OperatorPlan
from models.planning.parallelism import Scaling
from models.planning.physical.expansion import UnitCost, expand
from pipelines.measuring.exploration_record import ExplorationRecord
from pipelines.report import ReportSubject

SLOTS_AND_MST = ((2, 100.0), (4, 300.0), (2, 110.0), (4, 310.0), (3, 190.0))


@pytest.fixture
def job() -> Job:
    cost = Cost(cpu_s=0.01, bytes_out=100.0)
    return Job(
        name="tiny",
        description="A map between a source and a sink.",
        figures_from="made for tests",
        operators=(
            Operator(name="source", kind=Kind.SOURCE, cost=cost, figures_from="made for tests"),
            Operator(name="map", cost=cost, figures_from="made for tests"),
            Operator(name="sink", kind=Kind.SINK, cost=cost, selectivity=0, figures_from="made for tests"),
        ),
        edges=(
            Edge(upstream="source", downstream="map", partitioning="rebalance"),
            Edge(upstream="map", downstream="sink", partitioning="forward"),
        ),
    )


@pytest.fixture
def exploration() -> ExplorationRecord:
    observations = tuple(
        Observation(run=f"m{i}", task_slots=slots, memory_mb=1024, parallelism={"map": slots - 1, "sink": 1}, mst=mst)
        for i, (slots, mst) in enumerate(SLOTS_AND_MST)
    )
    return ExplorationRecord(
        job="tiny",
        testbed="simulator",
        slots_per_worker=4,
        observations=observations,
        steps=tuple(
            ExplorationStep(
                budget=Budget(task_slots=o.task_slots, memory_mb=o.memory_mb),
                mst=o.mst,
                loocv={"linear": 10.0, "log": 20.0} if i else {},
                suggested_by="corner" if i < 2 else "bayesian",
            )
            for i, o in enumerate(observations)
        ),
        stopped_because="the limit was reached",
    )


@pytest.fixture
def subject(job: Job, exploration: ExplorationRecord) -> ReportSubject:
    parallelism = {"source": 1, "map": 3, "sink": 1}
    records_in = {"source": 200.0, "map": 200.0, "sink": 200.0}
    costs = {name: UnitCost(cpu_s=0.01, state_bytes=0, bytes_out=100) for name in parallelism}
    dataflow = expand(job, parallelism, records_in, costs, memory_mb_per_task=256)
    scaling = Scaling(
        budget=Budget(task_slots=4, memory_mb=1024),
        parallelism=parallelism,
        managed_memory_mb=dict.fromkeys(parallelism, 0.0),
        policy="bids2",
        records_in_per_s=records_in,
        true_rate_per_task={"source": 400.0, "map": 100.0, "sink": 250.0},
        predicted_mst=Interval(value=305, low=280, high=330),
        dataflow=dataflow,
        operator_reasons=dict.fromkeys(parallelism, "made for tests"),
        reasons=("made <for> tests",),
        origin="made for tests",
    )
    plan = Plan(
        job="tiny",
        version=1,
        created_at="2026-01-02T03:04:05+00:00",
        target_rate=200,
        source_rates={"source": 200},
        headroom=1.1,
        task_slots=4,
        total_slots=5,
        memory_mb=1024,
        operators=tuple(
            OperatorPlan(
                name=name,
                parallelism=tasks,
                managed_memory_mb=0,
                records_in_per_s=200,
                predicted_busyness=busy,
                reason="made for tests",
            )
            for (name, tasks), busy in zip(parallelism.items(), (0.5, 0.667, 0.8), strict=True)
        ),
        placement={"tm-1": {"source": 1, "map": 2}, "tm-2": {"map": 1, "sink": 1}},
        cost=CostVector(cpu=0.2, io=0, net=0.4),
        thresholds=CostVector(cpu=0.2, io=0.01, net=0.4),
        placement_policy="caps",
        placement_status="feasible",
        predicted_mst=scaling.predicted_mst,
        reasons=scaling.reasons,
        lineage=Lineage(
            run="r1", trigger="plan", testbed="simulator", model="linear", policy="bids2", code_version="0.1.0", seed=0
        ),
    )
    return ReportSubject(
        plan=plan,
        job=job,
        cluster=Cluster.model_validate({"count": 2, "slots": 4}),
        scaling=scaling,
        exploration=exploration,
        capacity=CapacityModel.of(fit_regression("linear", Dataset.of(exploration.observations))),
    )


@pytest.fixture
def previous(subject: ReportSubject) -> Plan:
    """The version before: two tasks of the map, one on either worker."""
    tasks = {"source": 1, "map": 2, "sink": 1}
    fields = {
        "task_slots": 3,
        "total_slots": 4,
        "operators": tuple(o.model_copy(update={"parallelism": tasks[o.name]}) for o in subject.plan.operators),
        "placement": {"tm-1": {"source": 1, "map": 1}, "tm-2": {"map": 1, "sink": 1}},
    }
    return subject.plan.model_copy(update=fields)
