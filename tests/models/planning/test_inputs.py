"""What a scaling policy is given to plan with, against BIDS2's measured records in per source record."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from models.capacity.observation import Observation
from models.dataflow import Partitioning
from models.job import Job, records_in_per_source_record
from models.planning.inputs import MeasuredOperators, measured_operators
from models.planning.physical.expansion import expand
from models.scaling.ds2.model import ds2
from models.scaling.flink.policy import FlinkAutoscaler
from models.scaling.flink.settings import FlinkSettings

COST = {"figures_from": "made up", "cost": {"cpu_s": 1e-3}}


def measured(edges: list[str], selectivity: Mapping[str, float], **operators: dict[str, Any]) -> MeasuredOperators:
    """Of the source "s" and operators that take 1,000 records/s a task; edges are written "a b 0.5", the last the share."""
    job = Job.model_validate(
        {
            "name": "made-up",
            "description": "A source, and what reads from it.",
            "figures_from": "made up",
            "key_groups": 128,
            "operators": [
                {"name": "s", "kind": "source", **COST},
                *({"name": name} | COST | given for name, given in operators.items()),
            ],
            "edges": [
                {"from": a, "to": b, "partitioning": "hash", "share": float(share)}
                for a, b, share in (edge.split() for edge in edges)
            ],
        }
    )
    return MeasuredOperators(
        job=job,
        true_rate_per_task=dict.fromkeys(job.order, 1_000.0),
        selectivity={o.name: selectivity.get(o.name, o.selectivity) for o in job.operators},
        records_in_per_source_record=records_in_per_source_record(job, selectivity),
        unit_costs={},
        origin="made up",
    )


SINK = {"kind": "sink", "selectivity": 0.0}


def branches() -> MeasuredOperators:
    """A source that emits 2 records for each that it reads, half of them on each edge, and a union of both branches."""
    return measured(["s a 0.5", "s b 0.5", "a union 1", "b union 1"], {"s": 2.0, "b": 0.1}, a={}, b={}, union=SINK)


def test_a_policy_gets_no_more_into_a_branch_than_was_measured() -> None:
    """Of 20,000 records/s that are emitted 10,000 go down each edge; b passes on a tenth, a all of them."""
    operators = branches()
    assert operators.records_in(10_000.0) == {"s": 10_000, "a": 10_000, "b": 10_000, "union": 11_000}
    decided = ds2(operators.policy_rates(10_000.0))
    assert decided.exact == pytest.approx({"a": 10.0, "b": 10.0, "union": 11.0})


def test_a_selectivity_that_counts_records_once_for_each_edge_is_corrected() -> None:
    """Flink counts 20,000 records out of a source that sends all of its 10,000 down both edges."""
    operators = replace(measured(["s a 1", "s b 1"], {}, a=SINK, b=SINK), selectivity={"s": 2.0, "a": 0.0, "b": 0.0})
    assert ds2(operators.policy_rates(10_000.0)).exact == pytest.approx({"a": 10.0, "b": 10.0})


def test_flinks_autoscaler_plans_with_the_same_branches() -> None:
    settings = FlinkSettings.model_validate({"catch-up.duration": 0, "utilization.target": 1.0})
    decided = FlinkAutoscaler(settings).decide(branches().policy_rates(10_000.0))
    assert decided.exact == pytest.approx({"a": 10.0, "b": 10.0, "union": 11.0})


def test_a_policy_gets_what_passes_the_filter_of_a_source_once() -> None:
    """A tenth of the 10,000 records/s goes on, not a hundredth."""
    rates = measured(["s out 1"], {"s": 0.1}, out=SINK).policy_rates(10_000.0)
    assert rates.source_rates == {"s": 10_000}
    assert ds2(rates).exact == pytest.approx({"out": 1.0})


def test_a_policy_asks_for_no_more_tasks_than_an_operator_may_have() -> None:
    """4,290 records/s, 3,900 with a headroom of 1.1, would take 5 tasks, and 135,000 would take 135 of 128 key groups."""
    operators = measured(["s keyed 1", "keyed out 1"], {}, keyed={}, out=SINK | {"max_parallelism": 4})
    assert ds2(operators.policy_rates(4_290.0)).parallelism == {"keyed": 5, "out": 4}
    assert ds2(operators.policy_rates(135_000.0)).parallelism == {"keyed": 128, "out": 4}


def test_what_a_profile_broadcast_is_counted_once() -> None:
    """100 bytes to a and to each of the 3 tasks of b; a plan multiplies it by the tasks of b that it has."""
    job = measured(["s a 1", "s b 1"], {}, a=SINK, b=SINK).job
    to_a, to_b = job.edges
    to_b = to_b.model_copy(update={"partitioning": Partitioning.BROADCAST})
    job = job.model_copy(update={"edges": (to_a, to_b)})
    costs = {"cpu_s_per_record": 1e-3, "state_bytes_per_record": 0.0, "bytes_out_per_record": 400.0}
    rates = {"true_rate_per_task": 1000.0, "selectivity": 1.0, "records_in_per_source_record": 1.0}
    features = [{"run": "first", "operator": n, "tasks": t} | costs | rates for n, t in (("s", 2), ("a", 1), ("b", 3))]
    seen = Observation(
        run="first",
        task_slots=4,
        memory_mb=512,
        parallelism={"s": 2, "a": 1, "b": 3},
        mst=1000,
        operators=(),
        measured_s=60,
    )
    found = measured_operators(job, features, (seen,), "first")
    assert found.unit_costs["s"].bytes_out == pytest.approx(200)
    wider = expand(job, {"s": 2, "a": 1, "b": 5}, dict.fromkeys("sab", 10.0), found.unit_costs, 0)
    assert wider.operators[0].net == pytest.approx(5 * 600)
