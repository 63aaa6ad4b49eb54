"""Which testbed is opened, and how it is measured on; nothing is started here."""

from pathlib import Path

import pytest
from pydantic import ValidationError

from models.capacity.mst import MstSettings
from models.errors import InvalidInput
from pipelines.inputs.catalogue import job_name
from pipelines.inputs.plan_request import PlanRequest
from pipelines.measuring.flink import MEMORY_MB
from pipelines.measuring.testbeds import (
    kept_open,
    measuring,
    measuring_inputs,
    opened_profiling_testbed,
    opened_testbed,
)
from pipelines.run import PipelineRun
from pipelines.store.workspace import Workspace
from testbeds.flink.local.distribution import FLINK_2_3
from testbeds.flink.testbed import FlinkTestbed


def run_on(testbed: str, folder: Path, job: str = "nexmark-q5", **fields: str) -> PipelineRun:
    more = fields | ({"measurements": "x.csv"} if testbed == "recorded" else {})
    return PipelineRun(
        PlanRequest.model_validate({"job": job, "rate": 1.0, "testbed": testbed, **more}), Workspace(folder)
    )


def test_the_simulator_is_measured_as_in_the_paper_on_workers_to_spare(tmp_path: Path) -> None:
    run = run_on("simulator", tmp_path)
    assert measuring(run).mst == MstSettings.complex() and measuring(run).isolated
    with opened_profiling_testbed(run) as testbed:
        assert [w.name for w in testbed.cluster.workers] == [f"profile-{o.name}" for o in run.job.operators]


def test_flink_is_measured_in_little_time_on_the_workers_it_has(tmp_path: Path) -> None:
    run = run_on("flink", tmp_path)
    how = measuring(run)
    assert how.mst.longest_s <= 130 and not how.isolated and not how.as_file_says
    with opened_profiling_testbed(run) as testbed:
        assert (testbed.name, testbed.limits.max_task_slots) == ("flink", 16)
        assert testbed.limits.memory_levels_mb == MEMORY_MB


def test_a_job_that_is_drained_is_measured_in_a_third_of_the_time(tmp_path: Path) -> None:
    drained, searched = (run_on("flink", tmp_path, feed="kafka", **asked) for asked in ({}, {"mst": "injection"}))
    # A warm-up of 10 s and two windows of 10 s; a search takes 10 s and six times 20 s at most.
    assert (measuring(drained).by_drain, measuring(drained).longest_s) == (True, 30.0)
    assert (measuring(searched).by_drain, measuring(searched).longest_s) == (False, 130.0)


def test_measurements_on_one_version_of_flink_do_not_serve_another(tmp_path: Path) -> None:
    default, same, other = (
        run_on("flink", tmp_path, **fields) for fields in ({}, {"flink_version": "1.20"}, {"flink_version": "2.3"})
    )
    assert measuring_inputs(default) == measuring_inputs(same) and default.run_id == same.run_id
    assert measuring_inputs(default)["testbed"] != measuring_inputs(other)["testbed"]
    assert default.run_id != other.run_id
    with opened_testbed(other) as testbed:
        assert isinstance(testbed, FlinkTestbed) and testbed.release == FLINK_2_3
    forst = run_on("flink", tmp_path, flink_version="2.3", state_backend="forst")
    assert len({measuring_inputs(one)["testbed"] for one in (default, other, forst)}) == 3


def test_a_testbed_that_is_kept_open_serves_all_stages_of_its_run(tmp_path: Path) -> None:
    run, other = run_on("flink", tmp_path), run_on("flink", tmp_path, job="nexmark-q1")
    with kept_open():
        with opened_profiling_testbed(run) as first:
            pass
        with opened_testbed(run) as second, opened_testbed(other) as of_other:
            assert second is first and of_other is not first
    with opened_testbed(run) as later:
        assert later is not first


def test_recorded_measurements_have_nothing_to_measure_on(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="use 'simulator' or 'flink'"), opened_testbed(run_on("recorded", tmp_path)):
        pass


def test_a_sql_file_needs_flink(tmp_path: Path) -> None:
    with pytest.raises(ValidationError, match="measured on the testbed 'flink' only"):
        run_on("simulator", tmp_path, job="clicks.sql")
    assert job_name(Path("my clicks (2).sql")) == "my-clicks-2"
