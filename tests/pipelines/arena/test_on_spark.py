"""Replays on Spark are those of this machine."""

from collections.abc import Callable
from pathlib import Path

import pytest

from models.errors import InvalidInput
from pipelines.arena.evaluation import Evaluation, cells, evaluate
from pipelines.arena.on_spark import replay_on_spark
from pipelines.arena.request import EvaluationRequest
from pipelines.store.workspace import Workspace


@pytest.mark.slow
def test_spark_gives_the_results_of_this_machine(
    asked: EvaluationRequest, evaluated: Evaluation, kept_in: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from pyspark import SparkContext

    if SparkContext._active_spark_context is None:
        monkeypatch.setenv("SLUICE_SPARK_MASTER", "local[2]")
    workspace = Workspace(tmp_path)
    on_spark = evaluate(asked, workspace, compute=replay_on_spark)
    assert on_spark == evaluated
    for one in evaluated.finished:
        assert one.trace(workspace).equals(one.trace(Workspace(kept_in)))


@pytest.mark.slow
def test_what_a_replay_refuses_is_refused_with_its_own_words(request_of: Callable[..., EvaluationRequest]) -> None:
    (cell,) = cells(request_of(policies=["ds2"]))
    wrong = cell.model_copy(update={"policy": "guess"})
    with pytest.raises(InvalidInput, match="there is no policy 'guess'"):
        list(replay_on_spark({"key": wrong}))


def test_without_cells_no_session_is_started() -> None:
    assert list(replay_on_spark({})) == []
