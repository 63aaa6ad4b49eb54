"""The stage `select`: what it logs, what it registers, and what it does when it is stopped in the middle."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import mlflow.sklearn
import numpy as np
import pandas as pd
import pytest
import skops.io
from mlflow.entities import Run
from mlflow.exceptions import MlflowException
from mlflow.models import Model

from models.capacity.growth.capacity_model import CapacityModel
from models.capacity.growth.dataset import Dataset
from models.capacity.growth.regressions import fit_regression
from models.capacity.growth.shapes import LAWS
from models.capacity.observation import Observation
from models.capacity.selection import select as choose
from models.errors import InvalidInput
from pipelines.registry import selection_log
from pipelines.registry.models import CHALLENGER, find_version, list_versions
from pipelines.registry.selection_record import SelectionRecord
from pipelines.registry.tracking import TRACKING_VARIABLE, open_tracking
from pipelines.run import PipelineRun
from pipelines.stages.select import select
from pipelines.store.digests import digest_bytes

pytestmark = pytest.mark.slow
ExploredRun = Callable[..., PipelineRun]
JOB = "nexmark-q5"


def mlflow_runs(run: PipelineRun, role: str) -> list[Run]:
    tracking = open_tracking(run.workspace)
    wanted = f"tags.`sluice.role` = '{role}' and tags.`sluice.run` = '{run.run_id}'"
    return list(tracking.client.search_runs([tracking.experiment(JOB)], wanted))


def record_of(run: PipelineRun) -> SelectionRecord:
    return run.output("selection.json", SelectionRecord)


def test_what_is_logged_is_what_the_science_says(
    explored: ExploredRun, q5_observations: tuple[Observation, ...]
) -> None:
    run = explored()
    assert select(run) == run.workspace.uri("runs", JOB, "first", "selection.json")

    expected = choose(Dataset.of(q5_observations[:14]))
    (parent,) = mlflow_runs(run, "exploration")
    assert parent.info.status == "FINISHED"
    assert parent.info.run_name == "first"
    logged_weights = {law: parent.data.metrics[f"weight.{law}"] for law in expected.model.weights}
    assert logged_weights == expected.model.weights
    assert parent.data.metrics["loocv_rmse"] == expected.loocv_rmse
    assert parent.data.params["rate"] == "2500000.0"
    tags = parent.data.tags
    assert tags["sluice.review"] == "pending"
    assert tags["sluice.testbed"] == "recorded"
    assert tags["sluice.topology"] == selection_log.topology_digest(run.job)

    candidates = {r.data.params["model"]: r for r in mlflow_runs(run, "candidate")}
    assert set(candidates) == set(LAWS)
    for name, logged in candidates.items():
        assert logged.data.tags["mlflow.parentRunId"] == parent.info.run_id
        assert logged.data.metrics["loocv_rmse"] == expected.candidates[name].loocv_rmse
        assert logged.data.metrics["loocv_log_density"] == expected.candidates[name].log_density
        assert logged.data.metrics["weight"] == expected.model.weights.get(name, 0.0)
        assert logged.data.params["chosen"] == str(name in expected.model.weights)


def test_every_measurement_is_a_nested_run(explored: ExploredRun, q5_observations: tuple[Observation, ...]) -> None:
    run = explored()
    select(run)
    (parent,) = mlflow_runs(run, "exploration")
    nested = sorted(mlflow_runs(run, "measurement"), key=lambda r: str(r.info.run_name))
    assert [r.info.run_name for r in nested] == [f"m{i:03d}" for i in range(14)]
    assert {r.data.tags["mlflow.parentRunId"] for r in nested} == {parent.info.run_id}
    for logged, observation in zip(nested, q5_observations, strict=False):
        assert logged.data.metrics["mst"] == observation.mst
        assert logged.data.params["task_slots"] == str(observation.task_slots)
        assert logged.data.params["parallelism.source"] == "32"
    history = open_tracking(run.workspace).client.get_metric_history(parent.info.run_id, "mst")
    assert [m.value for m in history] == [o.mst for o in q5_observations[:14]]


def test_the_data_set_and_the_pictures_are_there(explored: ExploredRun) -> None:
    run = explored()
    select(run)
    (parent,) = mlflow_runs(run, "exploration")
    (data,) = parent.inputs.dataset_inputs
    assert data.dataset.name == "nexmark-q5-first"
    assert data.dataset.digest == record_of(run).exploration_digest[:36]
    assert "exploration.json" in data.dataset.source
    client = open_tracking(run.workspace).client
    artifacts = {a.path: a.file_size for a in client.list_artifacts(parent.info.run_id)}
    assert set(artifacts) == {"fit.png", "residuals.png", "errors.png", "exploration.json"}
    assert min(artifacts.values()) > 1000


def test_the_model_is_the_challenger_and_holds_no_pickle(
    explored: ExploredRun, q5_observations: tuple[Observation, ...]
) -> None:
    run = explored(model="log")
    select(run)
    record = record_of(run)
    info = find_version(open_tracking(run.workspace), JOB, CHALLENGER)
    assert (info.uri, info.selection) == ("models:/nexmark-q5/1", record)
    assert (record.model, record.forced) == ("log", True)

    everything = [p for p in run.workspace.local_folder("mlflow").rglob("*") if p.is_file()]
    assert {p.suffix for p in everything} <= {".db", ".png", ".json", ".skops", ".yaml", ".txt", ""}
    (file,) = [p for p in everything if p.name == "model.skops"]
    assert digest_bytes(file.read_bytes()) == record.model_digest
    assert skops.io.get_untrusted_types(file=file) == []
    estimator = skops.io.load(file, trusted=[])
    frame = pd.DataFrame({"memory_mb": [65536.0, 32768.0], "task_slots": [1079.0, 48.0]})
    log = fit_regression("log", Dataset.of(q5_observations[:14]))
    np.testing.assert_allclose(estimator.predict(frame), log.predict(frame["memory_mb"], frame["task_slots"]))
    (capacity,) = [p for p in everything if p.name == "capacity.json"]
    assert digest_bytes(capacity.read_bytes()) == record.capacity_digest
    assert CapacityModel.model_validate_json(capacity.read_bytes()).regression == log


def test_the_stacked_model_is_kept_whole_and_as_an_estimator(
    explored: ExploredRun, q5_observations: tuple[Observation, ...]
) -> None:
    run = explored()
    select(run)
    model = choose(Dataset.of(q5_observations[:14])).model
    (file,) = run.workspace.local_folder("mlflow").rglob("model.skops")
    assert CapacityModel.model_validate_json(file.with_name("capacity.json").read_bytes()) == model
    estimator = skops.io.load(file, trusted=[])
    frame = pd.DataFrame({"memory_mb": [65536.0, 32768.0, 32768.0], "task_slots": [1079.0, 48.0, 9.0]})
    expected = model.predict(frame["memory_mb"].to_numpy(), frame["task_slots"].to_numpy())
    np.testing.assert_allclose(estimator.predict(frame), expected, rtol=1e-3)


def test_the_model_says_what_it_takes_and_mlflow_does_not_load_it(
    explored: ExploredRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = explored()
    select(run)
    (folder,) = [p.parent for p in run.workspace.local_folder("mlflow").rglob("model.skops")]
    info = Model.load(str(folder))
    assert info.signature.inputs.input_names() == ["memory_mb", "task_slots"]
    assert info.saved_input_example_info is not None
    assert any(line.startswith("scikit-learn==") for line in (folder / "requirements.txt").read_text().splitlines())
    monkeypatch.setenv(TRACKING_VARIABLE, open_tracking(run.workspace).uri)
    with pytest.raises(MlflowException, match="disallowed"):
        mlflow.sklearn.load_model(str(folder))


def test_the_same_run_is_not_logged_twice(explored: ExploredRun) -> None:
    run = explored()
    select(run)
    before = record_of(run)
    select(run)
    run.workspace.delete(run.key("selection.json"))  # killed after MLflow was done, before the artifact was kept
    select(run)
    assert record_of(run) == before
    assert len(mlflow_runs(run, "exploration")) == 1
    assert len(mlflow_runs(run, "measurement")) == 14
    assert [v.version for v in list_versions(open_tracking(run.workspace), JOB)] == [1]


@pytest.mark.parametrize("killed_in", ["_candidate", "error_figure", "log_model", "_record", "selection_tag"])
def test_a_run_that_was_killed_is_replaced(
    explored: ExploredRun, monkeypatch: pytest.MonkeyPatch, killed_in: str
) -> None:
    class Killed(BaseException):
        """Not an Exception, so that no handler tidies up after it, as none does after kill -9."""

    def kill(*_arguments: Any) -> None:
        raise Killed

    run = explored()
    with monkeypatch.context() as patch:
        patch.setattr(selection_log, killed_in, kill)
        with pytest.raises(Killed):
            select(run)
    assert not run.workspace.exists(run.key("selection.json"))
    select(run)

    finished, superseded = sorted(mlflow_runs(run, "exploration"), key=lambda r: str(r.info.status), reverse=True)
    assert (superseded.info.status, superseded.data.tags["sluice.superseded"]) == ("FAILED", "true")
    assert finished.info.status == "FINISHED"
    assert record_of(run).mlflow_run_id == finished.info.run_id
    (only,) = list_versions(open_tracking(run.workspace), JOB)
    assert only.aliases == (CHALLENGER,)
    client = open_tracking(run.workspace).client
    assert len(client.search_model_versions(f"name = '{JOB}'")) == 1, "the version of the killed run is gone"


def test_a_failure_marks_the_run_as_failed(explored: ExploredRun, monkeypatch: pytest.MonkeyPatch) -> None:
    run = explored()

    def fail(*_arguments: Any) -> None:
        raise OSError("disk full")

    monkeypatch.setattr(selection_log, "log_model", fail)
    with pytest.raises(OSError, match="disk full"):
        select(run)
    (parent,) = mlflow_runs(run, "exploration")
    assert parent.info.status == "FAILED"


def test_other_observations_make_another_version(explored: ExploredRun) -> None:
    first, second = explored("first"), explored("second", observations=19)
    select(first)
    select(second)
    versions = list_versions(open_tracking(first.workspace), JOB)
    assert [(v.version, v.aliases, v.selection.run) for v in versions] == [
        (2, (CHALLENGER,), "second"),
        (1, (), "first"),
    ]


def test_too_few_observations_are_refused_before_anything_is_logged(explored: ExploredRun) -> None:
    run = explored(observations=2)
    with pytest.raises(InvalidInput, match="at least 3 observations"):
        select(run)
    assert not Path(run.workspace.local_folder("mlflow") / "artifacts").exists()
