"""A job whose operations change is the same job: nothing of it is measured again."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from models.job import Job
from pipelines.cli import run as sluice
from pipelines.inputs.job_files import JobFile, operations_of
from pipelines.inputs.plan_request import PlanRequest
from pipelines.run import PipelineRun
from pipelines.store.digests import digest
from pipelines.store.workspace import Workspace

RATES = {"prometheus": {"url": "http://127.0.0.1:9090", "query": "sum(rate(events_total[1m]))"}}
OPERATIONS: dict[str, Any] = {"replan": {"rates": RATES, "polls": 2}, "apply": {"mode": "alone", "flink": "http://h:1"}}
Q1_DIGEST = "72505c96bb498ee6"
"""Of the job before there were operations."""


@pytest.fixture
def job_file(root: Path, tmp_path: Path) -> Path:
    path = tmp_path / "mine.yaml"
    document = yaml.safe_load((root / "jobs" / "nexmark-q1.yaml").read_text())
    del document["sql"]
    path.write_text(yaml.safe_dump(document))
    return path


def _run(job_file: Path, operations: dict[str, Any] | None) -> PipelineRun:
    document = yaml.safe_load(job_file.read_text()) | {"operations": operations}
    job_file.write_text(yaml.safe_dump(document))
    request = PlanRequest(job=str(job_file), rate=1000.0)
    return PipelineRun(request, Workspace(job_file.parent / "workspace"))


def test_other_operations_are_the_same_run_of_the_same_job(job_file: Path) -> None:
    without, with_, otherwise = (_run(job_file, one) for one in (None, OPERATIONS, OPERATIONS | {"apply": {}}))
    assert (
        (without.run_id, digest(without.job))
        == (with_.run_id, digest(with_.job))
        == (
            otherwise.run_id,
            digest(otherwise.job),
        )
    )
    replan = operations_of(with_.job).replan
    assert replan is not None and replan.polls == 2


def test_what_is_cached_of_jobs_without_operations_stays_valid(root: Path) -> None:
    job = Job.model_validate(yaml.safe_load((root / "jobs" / "nexmark-q1.yaml").read_text()))
    assert digest(job)[:16] == Q1_DIGEST


def test_a_job_is_shown_with_its_operations(job_file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _run(job_file, OPERATIONS)
    assert sluice(["jobs", "show", str(job_file), "--json"]) == 0
    shown = JobFile.model_validate_json(capsys.readouterr().out)
    assert shown.operations is not None and shown.operations.apply.mode == "alone"
