"""An evaluation in MLflow: a run a job, a run nested in it a policy, and no second one of the same."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pipelines.arena.evaluation import Evaluation
from pipelines.arena.log import EVALUATION, POLICY, log_evaluation
from pipelines.arena.report.page import write_report
from pipelines.arena.request import EvaluationRequest
from pipelines.registry.selection_log import ROLE_TAG
from pipelines.registry.tracking import Tracking, open_tracking
from pipelines.store.workspace import Workspace

EXPERIMENT = "sluice/nexmark-q1"


@pytest.fixture
def workspace(
    make_tracked_workspace: Callable[[Path], Workspace], tmp_path: Path, asked: EvaluationRequest, kept_in: Path,
    evaluated: Evaluation,
) -> Workspace:  # fmt: skip
    """With an empty MLflow, the evaluation's results and its report."""
    made = make_tracked_workspace(tmp_path / "workspace")
    made.write_bytes(evaluated.results_key, Workspace(kept_in).read_bytes(evaluated.results_key))
    made.write_bytes(write_report(asked, evaluated, Workspace(kept_in)), b"<!doctype html>")
    return made


def _runs(tracking: Tracking, role: str) -> list[Any]:
    experiment = tracking.client.get_experiment_by_name(EXPERIMENT)
    found = tracking.client.search_runs([experiment.experiment_id], f"tags.`{ROLE_TAG}` = '{role}'")
    return sorted(found, key=lambda run: run.info.run_name)


def test_figures_winners_and_artifacts_are_logged(
    workspace: Workspace, asked: EvaluationRequest, evaluated: Evaluation
) -> None:
    runs = log_evaluation(asked, evaluated, workspace)
    tracking = open_tracking(workspace)
    (outer,) = _runs(tracking, EVALUATION)
    assert runs == {"nexmark-q1": outer.info.run_id}
    best = {r.winner.workload: r.winner for r in evaluated.rankings}
    assert {k: v for k, v in outer.data.params.items() if k.startswith("winner.")} == {
        f"winner.{workload}": standing.policy for workload, standing in best.items()
    }
    assert outer.data.params["policies"] == "ds2,hpa-cpu" and outer.data.params["seeds"] == "2"
    assert outer.data.metrics["task_hours.cosine"] == best["cosine"].task_hours
    assert sorted(f.path for f in tracking.client.list_artifacts(outer.info.run_id)) == [
        "report.html",
        "results.parquet",
    ]
    nested = _runs(tracking, POLICY)
    assert [run.info.run_name for run in nested] == ["ds2", "hpa-cpu"]
    for run in nested:
        assert run.data.tags["mlflow.parentRunId"] == outer.info.run_id
        (standing,) = [s for s in evaluated.rankings[1].standings if s.policy == run.info.run_name]
        assert run.data.metrics["latency_p95_s.random"] == standing.latency_p95_s
        assert "convergence_s.random" not in run.data.metrics  # there is no lasting change


def test_the_same_evaluation_makes_no_second_run_and_another_rule_does(
    workspace: Workspace, asked: EvaluationRequest, evaluated: Evaluation
) -> None:
    first = log_evaluation(asked, evaluated, workspace)
    assert log_evaluation(asked, evaluated, workspace) == first
    assert len(_runs(open_tracking(workspace), EVALUATION)) == 1
    stricter = asked.model_copy(update={"attainment": 0.5})
    assert log_evaluation(stricter, evaluated, workspace) != first


def test_a_run_that_was_killed_is_superseded(
    workspace: Workspace, asked: EvaluationRequest, evaluated: Evaluation, monkeypatch: pytest.MonkeyPatch
) -> None:
    from mlflow import MlflowClient

    with monkeypatch.context() as patch:
        patch.setattr(MlflowClient, "log_artifacts", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            log_evaluation(asked, evaluated, workspace)
    runs = log_evaluation(asked, evaluated, workspace)
    states = {run.info.run_id: run.info.status for run in _runs(open_tracking(workspace), EVALUATION)}
    assert sorted(states.values()) == ["FAILED", "FINISHED"]
    assert states[runs["nexmark-q1"]] == "FINISHED"
