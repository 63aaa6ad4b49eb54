"""What loading a registered model refuses."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import skops.io
from sklearn.linear_model import LinearRegression
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import FunctionTransformer

from known_answers.capacity_laws import regression
from models.capacity.growth.capacity_model import CapacityModel
from models.capacity.growth.regressions import Regression
from models.errors import SluiceError
from pipelines.registry.artifact import ChangedModel, ModelFiles, load_capacity, verify
from pipelines.registry.models import load_champion
from pipelines.registry.tracking import open_tracking
from pipelines.run import PipelineRun
from pipelines.stages.review import review
from pipelines.stages.select import select
from pipelines.store.digests import digest_bytes

pytestmark = pytest.mark.slow  # skops takes three seconds to import
ExploredRun = Callable[..., PipelineRun]
JOB = "nexmark-q5"


def reviewed(run: PipelineRun) -> None:
    select(run)
    review(run)


def model_file(run: PipelineRun) -> Path:
    (path,) = run.workspace.local_folder("mlflow").rglob("model.skops")
    return path


def test_a_file_that_was_exchanged_is_refused(explored: ExploredRun) -> None:
    run = explored()
    reviewed(run)
    path = model_file(run)
    path.write_bytes(path.read_bytes() + b" ")
    with pytest.raises(
        ChangedModel, match=r"models:/nexmark-q5/1 is not what was registered: its file model.skops has"
    ):
        load_champion(run.workspace, JOB)


def test_the_same_file_is_read_with_skops_once(explored: ExploredRun, monkeypatch: pytest.MonkeyPatch) -> None:
    run = explored()
    reviewed(run)
    first = load_champion(run.workspace, JOB)
    monkeypatch.setattr(skops.io, "loads", None)  # to read it again would fail
    assert load_champion(run.workspace, JOB) == first


def test_a_file_that_is_gone_is_named(explored: ExploredRun) -> None:
    run = explored()
    reviewed(run)
    shutil.rmtree(model_file(run).parent)
    with pytest.raises(SluiceError, match=r"model.skops cannot be read; bring it back"):
        load_champion(run.workspace, JOB)


def test_a_selection_that_disagrees_with_the_registry_is_refused(explored: ExploredRun) -> None:
    run = explored()
    reviewed(run)
    tracking = open_tracking(run.workspace)
    version = tracking.client.get_model_version(JOB, "1")
    selection = json.loads(version.tags["sluice.selection"])
    selection["capacity_digest"] = "0" * 64
    tracking.client.set_model_version_tag(JOB, "1", "sluice.selection", json.dumps(selection))
    with pytest.raises(ChangedModel, match="the selection in the registry is not the one in"):
        load_champion(run.workspace, JOB)
    run.workspace.delete(run.key("selection.json"))
    with pytest.raises(ChangedModel, match=r"its file capacity.json has the digest"):
        load_champion(run.workspace, JOB)


def test_a_capacity_model_that_was_exchanged_is_refused(explored: ExploredRun) -> None:
    run = explored()
    reviewed(run)
    path = model_file(run).with_name("capacity.json")
    path.write_text(path.read_text().replace('"weight": 0.', '"weight": 0.0', 1))
    with pytest.raises(ChangedModel, match=r"is not what was registered: its file capacity.json has the digest"):
        load_champion(run.workspace, JOB)


def test_a_file_that_is_no_capacity_model_is_refused_whatever_its_digest() -> None:
    content = b'{"components": []}'
    with pytest.raises(ChangedModel, match="holds no capacity model"):
        load_capacity(ModelFiles(b"", content), digest_bytes(content))


def pipeline_file(function: Any, log: Regression) -> bytes:
    linear = LinearRegression()
    linear.coef_, linear.intercept_, linear.n_features_in_ = np.array([log.memory, log.slots]), log.intercept, 2
    content: bytes = skops.io.dumps(Pipeline([("transform", FunctionTransformer(function)), ("regression", linear)]))
    return content


def test_an_estimator_with_the_coefficients_of_another_function_is_refused() -> None:
    log = regression("log", 1.0, 2.0, 3.0)
    content = pipeline_file(np.log1p, log)
    verify(content, digest_bytes(content), CapacityModel.of(log))
    content = pipeline_file(np.sqrt, log)  # the same numbers, behind another function
    with pytest.raises(ChangedModel, match="does not predict what its capacity model does"):
        verify(content, digest_bytes(content), CapacityModel.of(log))


def test_a_file_that_would_run_code_is_refused_whatever_its_digest() -> None:
    log = regression("log", 1.0, 2.0, 3.0)
    content = pipeline_file(shutil.rmtree, log)
    with pytest.raises(ChangedModel, match="types that are not trusted"):
        verify(content, digest_bytes(content), CapacityModel.of(log))
