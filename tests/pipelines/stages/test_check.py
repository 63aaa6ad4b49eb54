"""Checks of samples and features: good data passes; every kind of bad data stops the run, named and quarantined."""

import math
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from models.capacity.observation import Observation
from models.errors import SluiceError
from models.metrics import FEATURE_COLUMNS
from pipelines.checks.evidence import observation_evidence
from pipelines.checks.reporting import CheckReport
from pipelines.checks.specification import FEATURES, observations_of
from pipelines.inputs.plan_request import PlanRequest
from pipelines.measuring.exploration_record import EXPLORATION_FILE, ExplorationRecord
from pipelines.run import PipelineRun
from pipelines.stages.check import _check_table, check, check_features
from pipelines.stages.features import features
from pipelines.store.digests import digest, digest_bytes
from pipelines.store.samples import samples_key, write_samples
from pipelines.store.workspace import Workspace
from testbeds.protocol import SAMPLE_SCHEMA

pytestmark = pytest.mark.slow

Row = dict[str, Any]
JOB = "nexmark-q1"
TASKS = {"source": 1, "calc": 3, "sink": 2}
RUN = "r1-m000"


def sample(operator: str, task: int, step: int) -> Row:
    return {
        "run": RUN,
        "job": JOB,
        "operator": operator,
        "task": task,
        "worker": "tm-1",
        "phase": "observe" if step else "warmup",
        "time_s": 5.0 * (step + 1),
        "interval_s": 5.0,
        "records_in": 1000.0,
        "records_out": 900.0,
        "bytes_out": 90_000.0,
        "busy_s": 3.0,
        "backpressured_s": 0.5,
        "idle_s": 1.5,
        "cpu_s": 2.5,
        "state_read_bytes": 0.0,
        "state_written_bytes": 0.0,
        "cache_hits": 0.0,
        "cache_misses": 0.0,
        "state_latency_s": None,
        "lag_records": 0.0 if operator == "source" else None,
    }


def good_rows() -> list[Row]:
    return [sample(o, task, step) for step in range(4) for o, tasks in TASKS.items() for task in range(tasks)]


def table_of(rows: list[Row]) -> pa.Table:
    return pa.Table.from_pylist(rows, pa.schema([f.with_nullable(True) for f in SAMPLE_SCHEMA]))


@pytest.fixture
def run(tmp_path: Path, request: pytest.FixtureRequest) -> PipelineRun:
    asked = PlanRequest(job=JOB, rate=1e6, cluster="testbed", run=getattr(request, "param", "r1"))
    made = PipelineRun(asked, Workspace(tmp_path / "workspace"))
    keep_exploration(made, measured())
    return made


def measured(**changed: Any) -> list[Observation]:
    """Five observations, the last two of one budget; the last with changes."""
    rows: list[Row] = [
        {"run": f"r1-m{i:03d}", "task_slots": slots, "memory_mb": 4096.0, "mst": 1000.0 * slots}
        for i, slots in enumerate((2, 4, 8, 16, 16))
    ]
    return [Observation(**row, parallelism={}) for row in [*rows[:-1], {**rows[-1], **changed}]]


def keep_exploration(run: PipelineRun, observations: list[Observation]) -> None:
    record = ExplorationRecord(
        job=JOB,
        testbed=run.request.testbed,
        slots_per_worker=4,
        observations=tuple(observations[:1]),
        kept_back=tuple(observations[1:]),
        steps=(),
        stopped_because="by hand",
    )
    run.workspace.once(run.key(EXPLORATION_FILE), {"made": digest(record)}, ExplorationRecord, lambda: record)


def report_of(run: PipelineRun, table: str = "samples") -> CheckReport:
    return run.output(f"checks/{table}.json", CheckReport)


def read(uri: str) -> pa.Table:
    return pq.ParquetFile(uri.removeprefix("file://")).read()


def stopped(run: PipelineRun, stage: Callable[[PipelineRun], str] = check) -> str:
    with pytest.raises(SluiceError) as caught:
        stage(run)
    return str(caught.value)


# The second name is one that dateutil takes for a date and fails to represent; names of runs may be drawn.
@pytest.mark.parametrize("run", ["r1", "8a4378942874"], indirect=True)
def test_good_samples_pass_and_leave_a_report_and_docs(run: PipelineRun) -> None:
    write_samples(run.workspace, table_of([{**row, "run": f"{run.run_id}-m000"} for row in good_rows()]))
    uri = check(run)
    assert uri == run.workspace.uri(run.key("checks/observations.json"))
    assert (report_of(run, "observations").success, report_of(run, "observations").rows) == (True, 5)
    report = report_of(run)
    assert (report.success, report.rows, report.broken, report.quarantine) == (True, 24, (), ())
    assert Path(report.docs.removeprefix("file://")).is_file()


def test_what_was_checked_is_not_checked_again(run: PipelineRun) -> None:
    write_samples(run.workspace, table_of(good_rows()))
    check(run)
    docs = report_of(run).docs
    run.workspace.delete(docs.removeprefix(run.workspace.url.rstrip("/") + "/"))
    check(run)
    assert not Path(docs.removeprefix("file://")).exists()


def busy_1_3(rows: list[Row]) -> None:
    rows[5].update(busy_s=6.5, backpressured_s=0.0, idle_s=0.0)


def negative_rate(rows: list[Row]) -> None:
    rows[7]["records_in"] = -1.0


def clock_backwards(rows: list[Row]) -> None:
    rows[-1]["time_s"] = 1.0


def duplicated(rows: list[Row]) -> None:
    rows.insert(9, dict(rows[8]))


def not_a_number(rows: list[Row]) -> None:
    rows[3]["cpu_s"] = math.nan


def not_a_number_where_null_is_allowed(rows: list[Row]) -> None:
    rows[0]["lag_records"] = math.nan


def infinite(rows: list[Row]) -> None:
    rows[3]["bytes_out"] = math.inf


def null(rows: list[Row]) -> None:
    rows[3]["busy_s"] = None


def unknown_phase(rows: list[Row]) -> None:
    rows[3]["phase"] = "party"


def too_much_time(rows: list[Row]) -> None:
    rows[3]["idle_s"] = 4.0


@pytest.mark.parametrize(
    ("spoil", "rule", "bad_rows", "example"),
    [
        (busy_1_3, "busy_share must be between 0 and 1", 1, "busy_share=1.3"),
        (negative_rate, "records_in must be at least 0 records", 1, "records_in=-1.0"),
        (clock_backwards, "step_s must be at least 0 s", 1, "step_s=-14.0"),
        (duplicated, "no two rows may have the same run, operator, task, time_s", 2, "operator=calc, task=1"),
        (not_a_number, "not_finite must be 0", 1, "not_finite=1"),
        (not_a_number_where_null_is_allowed, "not_finite must be 0", 1, "operator=source"),
        (infinite, "not_finite must be 0", 1, "not_finite=1"),
        (null, "busy_s must not be null", 1, "operator=calc, task=2"),
        (unknown_phase, "phase must be one of profile, warmup", 1, "phase=party"),
        (too_much_time, "accounted_share must be between 0 and 1.01", 1, "accounted_share=1.5"),
    ],
)
def test_bad_rows_stop_the_run_and_are_quarantined(
    run: PipelineRun, spoil: Callable[[list[Row]], None], rule: str, bad_rows: int, example: str
) -> None:
    rows = good_rows()
    spoil(rows)
    write_samples(run.workspace, table_of(rows))
    message = stopped(run)
    report = report_of(run)
    (broken,) = [b for b in report.broken if b.rule.startswith(rule)]
    assert broken.rows == len(broken.examples) == bad_rows
    assert rule in message and broken.expectation in message and example in message
    (quarantine,) = report.quarantine
    kept = read(quarantine)
    assert kept.num_rows == bad_rows
    assert all(broken.rule in rules for rules in kept["broken_rules"].to_pylist())
    assert quarantine.endswith(f"/quarantine/{JOB}/r1/samples.parquet") and quarantine in message
    assert report.docs in message


def test_at_most_five_rows_are_shown_and_all_are_quarantined(run: PipelineRun) -> None:
    write_samples(run.workspace, table_of([{**row, "records_out": -5.0} for row in good_rows()]))
    message = stopped(run)
    assert message.count("records_out=-5.0") == 5
    assert "24 rows do not" in message
    assert read(report_of(run).quarantine[0]).num_rows == 24


def test_a_missing_operator_is_named(run: PipelineRun) -> None:
    write_samples(run.workspace, table_of([r for r in good_rows() if r["operator"] != "sink"]))
    message = stopped(run)
    assert "every operator of the job must be present" in message
    assert "run=r1-m000, operator=sink, expected_tasks=1, reported_tasks=0" in message


def test_a_missing_task_is_noticed_by_what_was_deployed(run: PipelineRun) -> None:
    write_samples(run.workspace, table_of([r for r in good_rows() if (r["operator"], r["task"]) != ("calc", 2)]))
    check(run)  # nothing says that there should be a third task
    kept = digest_bytes(run.workspace.read_bytes(samples_key(JOB, RUN)))
    observation = Observation(run=RUN, task_slots=5, memory_mb=1024, parallelism=TASKS, mst=1e6, samples_digest=kept)
    run.workspace.once(run.key("observations/m000.json"), {}, Observation, lambda: observation)
    assert "operator=calc, expected_tasks=3, reported_tasks=2" in stopped(run)


def test_a_task_that_is_left_out_is_noticed_by_the_numbering(run: PipelineRun) -> None:
    write_samples(run.workspace, table_of([r for r in good_rows() if (r["operator"], r["task"]) != ("calc", 1)]))
    assert "operator=calc, expected_tasks=3, reported_tasks=2" in stopped(run)


def test_a_missing_column_is_named(run: PipelineRun) -> None:
    whole = table_of(good_rows()).drop_columns(["busy_s", "run", "job"])
    run.workspace.write_table(samples_key(JOB, RUN), whole)
    message = stopped(run)
    assert "the columns must be those of the specification, in its order, but missing: busy_s" in message
    assert read(report_of(run).quarantine[0]).num_rows == 24


@pytest.mark.parametrize(
    ("column", "values"),
    [("busy_s", pa.array(["3.0"] * 24)), ("task", pa.array([0.5] * 24)), ("task", pa.array([0] * 24, pa.int32()))],
)
def test_a_wrong_type_is_named(run: PipelineRun, column: str, values: pa.Array) -> None:
    table = table_of(good_rows())
    write_samples(run.workspace, table.set_column(table.column_names.index(column), column, values))
    assert re.search(rf"{column} must be of type (long|double)", stopped(run))


def test_how_texts_are_encoded_is_no_fault(run: PipelineRun) -> None:
    table = table_of(good_rows())
    operators = table["operator"].combine_chunks().dictionary_encode()
    workers = table["worker"].cast(pa.large_string())
    table = table.set_column(2, "operator", operators).set_column(4, "worker", workers)
    write_samples(run.workspace, table.set_column(19, "state_latency_s", pa.nulls(table.num_rows)))
    check(run)
    assert report_of(run).success


def test_data_docs_need_no_network(run: PipelineRun) -> None:
    rows = good_rows()
    busy_1_3(rows)
    write_samples(run.workspace, table_of(rows))
    stopped(run)
    folder = Path(report_of(run).docs.removeprefix("file://")).parent
    pages = {p: p.read_text() for p in folder.rglob("*.html")}
    assert len(pages) == 5  # the index; rules and results of samples and of coverage
    for text in pages.values():
        assert not re.search(r"""<script|(?:src|<link[^>]*href)\s*=\s*["']?(?:https?:)?//|url\(\s*['"]?http""", text)
    titles = [re.findall("<title>(.*?)</title>", text, re.DOTALL) for text in pages.values()]
    assert sorted(titles) == [
        ["Data Docs"], ["coverage: results - Data Docs"], ["coverage: rules - Data Docs"],
        ["samples: results - Data Docs"], ["samples: rules - Data Docs"],
    ]  # fmt: skip
    index = pages[folder / "index.html"]
    assert all((folder / link).is_file() for link in re.findall(r'href="([^"]+)"', index))
    assert any("busy_share must be between 0 and 1" in text for text in pages.values())
    assert '<span class="failed">failed</span>' in index and '<span class="passed">passed</span>' in index


@pytest.mark.parametrize(
    ("testbed", "changed", "rule", "example"),
    [
        ("simulator", {"mst": 2500.0}, "repeat_ratio must be between 0.5 and 2", "run=r1-m004"),
        ("recorded", {"mst": 2500.0}, "repeat_ratio must be between 0.5 and 2", "run=r1-m004"),
        ("recorded", {"task_slots": 1}, "task_slots must be between 2 and", "task_slots=1"),
        ("simulator", {"task_slots": 49}, "task_slots must be between 2 and 48 slots", "task_slots=49"),
        (
            "recorded",
            {"memory_mb": 4096.0 * 1024 * 1024},
            "memory_mb must be between 64 and 1.67772e+07 MiB",
            "run=r1-m004",
        ),
        ("recorded", {"memory_mb": 4.0}, "memory_mb must be between 64", "memory_mb=4.0"),
        ("recorded", {"run": "r1-m000"}, "no two rows may have the same run", "run=r1-m000"),
    ],
)
def test_bad_observations_stop_the_run_before_a_model_is_selected(
    run: PipelineRun, testbed: str, changed: Row, rule: str, example: str
) -> None:
    if testbed == "recorded":
        asked = PlanRequest(job=JOB, rate=1e6, testbed="recorded", measurements=__file__, run="r1")
        run = PipelineRun(asked, run.workspace)
    else:
        write_samples(run.workspace, table_of(good_rows()))
    keep_exploration(run, measured(**changed))
    message = stopped(run)
    assert rule in message and example in message
    assert not report_of(run, "observations").success
    with pytest.raises(SluiceError):
        check(run)


def test_an_mst_must_be_finite_and_above_0(run: PipelineRun) -> None:
    """What an observation cannot hold is refused, too, where a table of them comes from elsewhere."""
    specification = observations_of(run)
    rows = [
        {"run": f"r{i}", "task_slots": 4, "memory_mb": 4096.0, "mst": mst, "measured_s": 0.0}
        for i, mst in enumerate((1000.0, 0.0, math.inf))
    ]
    table = pa.Table.from_pylist(rows, specification.schema)
    report = _check_table(run, specification, table, observation_evidence)
    broken = {b.rule for b in report.broken}
    assert {"mst must be above 0 records/s", "not_finite must be 0"} <= broken


def test_samples_that_are_not_those_that_were_measured_are_refused_by_their_name(run: PipelineRun) -> None:
    digests = write_samples(run.workspace, table_of(good_rows()))
    observation = Observation(
        run=RUN, task_slots=5, memory_mb=1024, parallelism=TASKS, mst=1e6, samples_digest=digests[RUN]
    )
    run.workspace.once(run.key("observations/m000.json"), {}, Observation, lambda: observation)
    check(run)
    rows = good_rows()
    rows[3]["records_in"] += 1.0
    write_samples(run.workspace, table_of(rows))  # as good as before, and another
    for stage in (check, features):
        assert f"{samples_key(JOB, RUN)} has the SHA-256" in stopped(run, stage)


def feature_row(operator: str, **changed: Any) -> Row:
    ones: Row = {c.name: 1.0 for c in FEATURE_COLUMNS}
    return {**ones, "run": RUN, "job": JOB, "operator": operator, "tasks": 1, **changed}


@pytest.mark.parametrize(
    ("rows", "rule"),
    [
        ([feature_row("source"), feature_row("calc", busyness=1.2), feature_row("sink")], "busyness must be between"),
        ([feature_row("source"), feature_row("calc")], "every operator of the job must be present"),
        ([feature_row(o) for o in ("source", "calc", "sink", "sink")], "no two rows may have the same run, operator"),
        ([feature_row("source"), feature_row("calc", skew=math.nan), feature_row("sink")], "not_finite must be 0"),
    ],
)
def test_bad_features_stop_the_run(run: PipelineRun, rows: list[Row], rule: str) -> None:
    run.workspace.write_table(run.key("features.parquet"), pa.Table.from_pylist(rows, FEATURES.schema))
    assert rule in stopped(run, check_features)
    assert not report_of(run, "features").success


def test_good_features_pass(run: PipelineRun) -> None:
    rows = [feature_row(o, skew=None, busyness=1.0 + 1e-9) for o in TASKS]
    run.workspace.write_table(run.key("features.parquet"), pa.Table.from_pylist(rows, FEATURES.schema))
    check_features(run)
    assert report_of(run, "features").rows == 3


def test_a_run_without_samples_says_what_to_run_first(run: PipelineRun) -> None:
    assert "run the stages profile and explore first" in stopped(run)


def test_great_expectations_is_not_imported_before_it_is_needed() -> None:
    imports = "import sys, pipelines.stages.check, pipelines.stages.features"
    code = f"{imports}; print({{'great_expectations', 'pyspark'}} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"
