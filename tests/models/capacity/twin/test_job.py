"""The job that a twin simulates: what it has of the job's file, and what of the samples."""

import pytest

from models.capacity.twin.job import OperatorSeen, fires_every_s, live_s, twin_job
from models.errors import InvalidInput
from models.job import Cost, Job, Keys, Operator, State, Window, WindowKind

HOT = Keys(distinct=1000, hot_share=0.3, hot_period_s=2.0)
SEEN = {
    "source": OperatorSeen(cpu_s=1e-6, bytes_out=100.0, rate_share=1.0),
    "count": OperatorSeen(
        cpu_s=2e-6,
        external_wait_s=5e-6,
        selectivity=0.5,
        bytes_out=30.0,
        state_read_bytes=64.0,
        fire_share=0.4,
        live_bytes_per_record=8.0,
        keys=HOT,
    ),
    "join": OperatorSeen(
        cpu_s=3e-6, selectivity=0.2, bytes_out=20.0, state_read_bytes=10.0, key_bytes=5000.0, keys=HOT
    ),
    "sink": OperatorSeen(cpu_s=1e-7, selectivity=0.0),
}


def a_job(scale: float = 1.0) -> Job:
    """A windowed count and a join without a window; its figures are multiples of `scale`."""

    def operator(name: str, kind: str = "operator", **fields: object) -> dict[str, object]:
        cost = Cost(cpu_s=scale, state_read_bytes=scale, state_write_bytes=scale, bytes_out=scale)
        return {"name": name, "kind": kind, "cost": cost, "figures_from": f"x{scale}", **fields}

    window = Window(kind=WindowKind.SLIDING, length_s=10.0, slide_s=2.0, fire_share=min(scale / 10, 1.0))
    keys = Keys(distinct=round(100 * scale))
    state = State(bytes_per_record=scale, bytes_per_key=scale, hot_set_ratio=1 / (1 + scale))
    operators = [
        operator("source", "source"),
        operator("count", window=window, keys=keys, state=state, selectivity=scale),
        operator("join", keys=keys, state=state, max_parallelism=7),
        operator("sink", "sink"),
    ]
    names = ["source", "count", "join", "sink"]
    edges = [
        {"from": a, "to": b, "partitioning": how}
        for a, b, how in zip(names, names[1:], ["hash", "hash", "rebalance"], strict=False)
    ]
    return Job.model_validate(
        {
            "name": "j",
            "description": "d",
            "figures_from": "f",
            "key_groups": 256,
            "operators": operators,
            "edges": edges,
        }
    )


def test_nothing_of_the_files_figures_is_in_the_twin() -> None:
    assert twin_job(a_job(1.0), SEEN, "seen") == twin_job(a_job(3.0), SEEN, "seen")


def test_it_has_the_dataflow_of_the_job_and_the_figures_seen() -> None:
    job = a_job()
    made = twin_job(job, SEEN, "seen in m001")
    assert (made.name, made.edges, made.key_groups) == ("twin-of-j", job.edges, 256)
    count, join = made.operator("count"), made.operator("join")
    assert count.cost == Cost(cpu_s=2e-6, external_wait_s=5e-6, state_read_bytes=64.0, bytes_out=30.0)
    assert count.window == Window(kind=WindowKind.SLIDING, length_s=10.0, slide_s=2.0, fire_share=0.4)
    assert (count.selectivity, count.keys, count.state) == (0.5, HOT, State(bytes_per_record=8.0))
    assert (join.max_parallelism, join.state) == (7, State(bytes_per_key=5.0))
    assert {o.figures_from for o in made.operators} == {"seen in m001"}


def test_an_operator_without_figures_is_named() -> None:
    with pytest.raises(InvalidInput, match="there are none of join, sink"):
        twin_job(a_job(), {name: SEEN[name] for name in ("source", "count")}, "seen")


def test_windows_before_an_operator_fire_its_keys() -> None:
    job = a_job()
    assert fires_every_s(job, "join") == 2.0
    assert fires_every_s(job, "sink") == 2.0
    assert fires_every_s(job, "count") is None


def test_records_live_as_long_as_the_window_or_the_time_to_live() -> None:
    operator: Operator = a_job().operator("join")
    assert live_s(a_job().operator("count")) == 10.0
    assert live_s(operator) is None
    assert live_s(operator.model_copy(update={"state": State(ttl_s=30.0)})) == 30.0
