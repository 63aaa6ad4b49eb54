"""Threshold tables: their scalings, their use in a replan, and the effect of damage or a kill."""

import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from subprocess import PIPE
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import pipelines.planning.placing
from models.capacity.sizing import Margin
from models.cluster import Cluster
from models.dataflow import Dataflow
from models.errors import InvalidInput
from models.placement import tune
from models.placement.cost import costs
from models.placement.problem import Problem, idle_dimensions
from models.planning.budget import size
from models.planning.inputs import PlanningInputs
from models.planning.parallelism import Scaling, scale
from pipelines.inputs.parsing.files import validate_as
from pipelines.inputs.plan_request import PlanRequest
from pipelines.planning.gathering import gather
from pipelines.planning.placing import tuned_placement
from pipelines.planning.replan import replan
from pipelines.planning.threshold_request import ThresholdRequest
from pipelines.planning.threshold_table import make_table, threshold_table
from pipelines.run import PipelineRun
from pipelines.stages import run_all
from pipelines.store.plans import PlanStore
from pipelines.store.thresholds import ThresholdRow, add_rows, read_rows, scaling_key, stored_tuning, table_key
from pipelines.store.workspace import Workspace

RATE = 1_080_000.0


class Asked:
    """A small plan of q5 from published measurements, and what is known of the job."""

    def __init__(self, workspace: Workspace, recorded: PlanRequest) -> None:
        self.run = PipelineRun(recorded.model_copy(update={"rate": RATE}), workspace)
        run_all(self.run)
        self.workspace, self.cluster = workspace, self.run.cluster

    @property
    def known(self) -> PlanningInputs:
        return gather(self.run)

    def scaling(self, rate: float) -> Scaling:
        known, memory_mb = self.known, self.run.request.memory_mb
        sizing = size(known.capacity, known.model, self.cluster, rate, Margin(headroom=1.1), memory_mb)
        return scale(known.operators, sizing, rate, "ds2")

    @property
    def key(self) -> str:
        return table_key(self.known.operators, self.cluster)

    def row(self, rate: float) -> ThresholdRow:
        """A row that is tuned here."""
        scaling = self.scaling(rate)
        tuning = tune(scaling.dataflow, self.cluster)
        return ThresholdRow(
            key=scaling_key(scaling, self.cluster),
            rate=rate,
            parallelism=scaling.parallelism,
            memory_mb=scaling.dataflow.operators[0].memory_mb,
            total_slots=scaling.dataflow.tasks,
            status=tuning.status,
            thresholds=tuning.thresholds,
            seconds=0.5,
            tuning=tuning,
        )


@pytest.fixture(scope="module")
def asked(
    tmp_path_factory: pytest.TempPathFactory,
    make_tracked_workspace: Callable[[Path], Workspace],
    recorded_request: PlanRequest,
) -> Asked:
    return Asked(make_tracked_workspace(tmp_path_factory.mktemp("asked")), recorded_request)


@pytest.fixture
def no_table(asked: Asked) -> None:
    for key in asked.workspace.list("thresholds"):
        asked.workspace.delete(key)


def test_rates_lie_around_the_present_one_and_the_nearest_come_first() -> None:
    assert ThresholdRequest(lowest=0.7, highest=1.25).factors() == [1.0, 0.9, 1.1, 0.8, 1.2, 0.7]
    assert sorted(ThresholdRequest().factors()) == [round(0.5 + k / 10, 9) for k in range(16)]
    assert ThresholdRequest(lowest=1, highest=1).factors() == [1.0]


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"lowest": 1.1}, "'lowest'"),
        ({"highest": 0.9}, "'highest'"),
        ({"lowest": 0}, "'lowest'"),
        ({"step": 0}, "'step'"),
        ({"step": 1e-6}, "at most 2000 rates"),
        ({"time_limit_s": 0}, "'time_limit_s'"),
        ({"seed": -1}, "'seed'"),
    ],
)
def test_a_grid_that_makes_no_sense_is_refused(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        validate_as(fields, ThresholdRequest, origin="the request")


@given(
    st.lists(st.tuples(st.integers(1, 4), *[st.floats(0.01, 100) for _ in range(3)]), min_size=1, max_size=3),
    st.floats(1e-3, 1e3),
    st.integers(1, 3),
    st.randoms(use_true_random=False),
)
def test_a_higher_rate_multiplies_loads_and_changes_no_cost(
    operators: list[tuple[int, float, float, float]], factor: float, count: int, random: Any
) -> None:
    named = [
        {"name": f"o{i}", "parallelism": p, "cpu": cpu, "io": io, "net": net}
        for i, (p, cpu, io, net) in enumerate(operators)
    ]
    edges = [{"from": f"o{i}", "to": f"o{i + 1}", "partitioning": "hash"} for i in range(len(operators) - 1)]
    higher = [o | {d: o[d] * factor for d in ("cpu", "io", "net")} for o in named]
    cluster = Cluster.model_validate({"count": count, "slots": sum(p for p, *_ in operators)})
    before, after = (
        Problem.of(Dataflow.model_validate({"operators": of, "edges": edges}), cluster) for of in (named, higher)
    )
    plan = np.zeros((count, len(operators)), dtype=np.int64)
    for i, (p, *_) in enumerate(operators):
        for _ in range(p):
            plan[random.randrange(count), i] += 1
    assert costs(after, plan) == pytest.approx(costs(before, plan), abs=1e-6)


def test_rows_come_back_as_they_were_kept(asked: Asked, tmp_path: Path) -> None:
    workspace = Workspace(tmp_path)
    without = ThresholdRow(
        key="x",
        rate=2.0,
        parallelism={"a": 3},
        memory_mb=1.5,
        total_slots=3,
        status="infeasible",
        message="no",
        seconds=0,
    )
    rows = {row.key: row for row in (asked.row(RATE), without)}
    add_rows(workspace, "thresholds/q5/t", rows.values())
    assert read_rows(workspace, "thresholds/q5/t") == rows
    assert read_rows(workspace, "thresholds/q5/none") == {}


def row(key: str, **fields: Any) -> ThresholdRow:
    """A row without a tuning."""
    given = {"rate": 2.0, "parallelism": {"a": 3}, "memory_mb": 0, "total_slots": 3, "status": "failed", "seconds": 0}
    return ThresholdRow(**(given | {"key": key} | fields))


WRITER = """
import sys
from pipelines.store.thresholds import ThresholdRow, add_rows
from pipelines.store.workspace import Workspace
print("ready", flush=True)
for line in sys.stdin:
    add_rows(Workspace(sys.argv[1]), "thresholds/q5/t", [ThresholdRow.model_validate_json(line)])
"""


@pytest.mark.slow
def test_of_two_writers_at_once_neither_loses_a_row(tmp_path: Path) -> None:
    """Two processes add 30 rows each, ten of them the same ones, and start together."""
    keys = [f"r{number:02d}" for number in range(50)]
    command = [sys.executable, "-c", WRITER, str(tmp_path)]
    writers = [subprocess.Popen(command, stdin=PIPE, stdout=PIPE, text=True) for _ in range(2)]
    assert [writer.stdout.readline() for writer in writers if writer.stdout] == ["ready\n"] * 2
    for writer, own in zip(writers, (keys[:30], keys[:19:-1]), strict=True):
        assert writer.stdin is not None
        writer.stdin.write("\n".join(row(key).model_dump_json(by_alias=True) for key in own))
        writer.stdin.flush()
    for writer in writers:
        writer.communicate(timeout=60)
    assert [writer.returncode for writer in writers] == [0, 0]
    assert sorted(read_rows(Workspace(tmp_path), "thresholds/q5/t")) == keys


def test_a_row_without_thresholds_leaves_those_there_are(asked: Asked, tmp_path: Path) -> None:
    workspace, tuned = Workspace(tmp_path), asked.row(RATE)
    add_rows(workspace, "thresholds/q5/t", [row(tuned.key)])
    add_rows(workspace, "thresholds/q5/t", [tuned])
    add_rows(workspace, "thresholds/q5/t", [row(tuned.key)])
    assert read_rows(workspace, "thresholds/q5/t") == {tuned.key: tuned}


@pytest.mark.usefixtures("no_table")
def test_a_scaling_that_is_in_the_table_is_not_searched_for(asked: Asked, monkeypatch: pytest.MonkeyPatch) -> None:
    row = asked.row(RATE)
    add_rows(asked.workspace, asked.key, [row])

    def search(*_: object, **__: object) -> None:
        raise AssertionError("it searched")

    monkeypatch.setattr(pipelines.planning.placing, "tune", search)
    # Half a record/s more needs the same tasks; its loads differ.
    for rate in (RATE, RATE + 0.5):
        scaling = asked.scaling(rate)
        found = tuned_placement(scaling, rate, asked.cluster, (asked.workspace, asked.known.operators))
        assert row.tuning is not None
        idle = idle_dimensions(scaling.dataflow, asked.cluster)
        assert found.tuning == row.tuning.model_copy(update={"left_out": idle})
        assert found.from_table
    with pytest.raises(AssertionError, match="it searched"):
        table = (asked.workspace, asked.known.operators)
        tuned_placement(asked.scaling(0.9 * RATE), 0.9 * RATE, asked.cluster, table)
    with pytest.raises(AssertionError, match="it searched"):
        tuned_placement(asked.scaling(RATE), RATE, asked.cluster)


def test_a_rate_at_which_another_dimension_can_be_short_has_a_row_of_its_own(asked: Asked) -> None:
    scaling = asked.scaling(RATE)
    idle = idle_dimensions(scaling.dataflow, asked.cluster)
    worst, factor = max(idle.values()), 1 / max(idle.values())

    def at(times: float) -> Scaling:
        loads = [
            o.model_copy(update={d: times * getattr(o, d) for d in ("cpu", "io", "net")})
            for o in scaling.dataflow.operators
        ]
        return scaling.model_copy(update={"dataflow": scaling.dataflow.model_copy(update={"operators": tuple(loads)})})

    assert 0 < worst < 0.5
    assert scaling_key(at(0.49 * factor), asked.cluster) == scaling_key(scaling, asked.cluster)
    assert scaling_key(at(0.51 * factor), asked.cluster) != scaling_key(scaling, asked.cluster)


@pytest.mark.usefixtures("no_table")
def test_a_replan_takes_its_placement_from_the_table(asked: Asked, monkeypatch: pytest.MonkeyPatch) -> None:
    rate = 0.9 * RATE
    add_rows(asked.workspace, asked.key, [asked.row(rate)])
    monkeypatch.setattr(pipelines.planning.placing, "tune", None)  # to tune would fail
    replanned = replan(asked.workspace, "nexmark-q5", rate)
    assert (replanned.is_new, replanned.plan.target_rate) == (True, rate)
    assert any(reason.endswith("the placement from the threshold table") for reason in replanned.plan.reasons)


@pytest.mark.usefixtures("no_table")
def test_another_cluster_or_another_cost_has_a_table_of_its_own(asked: Asked) -> None:
    add_rows(asked.workspace, asked.key, [asked.row(RATE)])
    operators, scaling = asked.known.operators, asked.scaling(RATE)
    assert stored_tuning(asked.workspace, operators, scaling, asked.cluster) is not None
    smaller = asked.cluster.model_copy(update={"workers": asked.cluster.workers[:-1]})
    assert stored_tuning(asked.workspace, operators, scaling, smaller) is None
    dearer = {name: c.model_copy(update={"cpu_s": 2 * c.cpu_s}) for name, c in operators.unit_costs.items()}
    assert stored_tuning(asked.workspace, replace(operators, unit_costs=dearer), scaling, asked.cluster) is None


@pytest.mark.usefixtures("no_table")
def test_damage_is_reported_and_costs_only_its_row(asked: Asked, caplog: pytest.LogCaptureFixture) -> None:
    rows = [asked.row(RATE), asked.row(0.8 * RATE)]
    add_rows(asked.workspace, asked.key, rows)
    first, second = (f"{asked.key}/{of.key}.parquet" for of in rows)
    table = asked.workspace.read_table(first)
    changed = [of | {"cpu": 0.0} for of in table.to_pylist()]
    asked.workspace.write_table(first, type(table).from_pylist(changed, schema=table.schema))
    assert list(read_rows(asked.workspace, asked.key)) == [rows[1].key]
    assert "does not match its content" in caplog.text
    asked.workspace.write_bytes(second, b"PAR1, but nothing else")
    assert read_rows(asked.workspace, asked.key) == {}
    assert "is damaged" in caplog.text
    asked.workspace.write_table(second, pa.concat_tables([table, table]))
    assert read_rows(asked.workspace, asked.key) == {}
    assert "2 rows instead of one" in caplog.text


def test_a_job_without_a_plan_has_no_table(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="run `sluice plan` first"):
        threshold_table(Workspace(tmp_path), "nexmark-q5")


NEAR = ThresholdRequest(rate=RATE, lowest=0.8, highest=1.1)


@pytest.mark.slow
@pytest.mark.usefixtures("no_table")
def test_the_table_holds_each_scaling_once_and_grows_by_what_is_missing(asked: Asked) -> None:
    def written() -> dict[str, bytes]:
        return {key: asked.workspace.read_bytes(key) for key in asked.workspace.list(asked.key)}

    made = make_table(asked.workspace, "nexmark-q5", NEAR)
    assert made.tuned == len(made.rows) == 4
    assert [row.rate for row in made.rows] == pytest.approx([0.8 * RATE, 0.9 * RATE, RATE, 1.1 * RATE])
    assert {row.status for row in made.rows} <= {"optimal", "feasible"}
    for row in made.rows:
        assert row.parallelism == asked.scaling(row.rate).parallelism
        assert row.tuning is not None and row.placement is not None
        assert sum(sum(tasks.values()) for tasks in row.placement.values()) == row.total_slots
        assert row.seconds > 0
    assert made.uri == asked.workspace.uri(asked.key)

    before = written()
    again = make_table(asked.workspace, "nexmark-q5", NEAR)
    assert (again.tuned, again.rows) == (0, made.rows)
    assert written() == before

    wider = make_table(asked.workspace, "nexmark-q5", NEAR.model_copy(update={"lowest": 0.7}))
    assert wider.tuned == 1
    assert wider.rows[1:] == made.rows
    assert len(read_rows(asked.workspace, asked.key)) == 5


@pytest.mark.slow
@pytest.mark.usefixtures("no_table")
def test_a_killed_run_goes_on_with_what_is_missing(asked: Asked, monkeypatch: pytest.MonkeyPatch) -> None:
    class Killed:
        """Stops the run after the first part, as Ctrl-C does."""

        def say(self, message: str) -> None: ...

        def track(self, items: Any, description: str, total: int | None = None) -> Any:
            yield next(iter(items))
            raise KeyboardInterrupt

    monkeypatch.setattr("pipelines.planning.threshold_table._parts", lambda names, size: ([n] for n in names))
    with pytest.raises(KeyboardInterrupt):
        make_table(asked.workspace, "nexmark-q5", NEAR, Killed())
    kept = read_rows(asked.workspace, asked.key)
    assert [row.rate for row in kept.values()] == [RATE]  # the likeliest first
    made = make_table(asked.workspace, "nexmark-q5", NEAR)
    assert made.tuned == 3
    assert kept.items() <= read_rows(asked.workspace, asked.key).items()


@pytest.mark.slow
@pytest.mark.usefixtures("no_table")
def test_rates_out_of_reach_are_reported(asked: Asked) -> None:
    made = make_table(asked.workspace, "nexmark-q5", ThresholdRequest(rate=2_700_000, lowest=1, highest=1.1))
    assert [row.total_slots <= asked.cluster.slots for row in made.rows] == [True]
    (out,) = made.unreachable
    assert out.rate == pytest.approx(2_970_000)
    assert "slots, but the cluster has 2048" in out.reason


@pytest.mark.slow
@pytest.mark.usefixtures("no_table")
def test_others_can_read_the_files(asked: Asked) -> None:
    uri = threshold_table(asked.workspace, "nexmark-q5", ThresholdRequest(lowest=1, highest=1))
    (row,) = pq.read_table(uri.removeprefix("file://")).to_pylist()
    assert {"status", "cpu", "io", "net", "placement", "seconds"} <= row.keys()
    assert row["total_slots"] == PlanStore(asked.workspace).current("nexmark-q5").total_slots
