"""The rule of the review, what it moves, and what loading a model refuses."""

import json
import os
import re
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import mlflow
import numpy as np
import pandas as pd
import pytest
import skops.io
from sklearn.linear_model import LinearRegression
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import FunctionTransformer

from models.capacity.observation import Observation
from models.capacity.surrogates import Dataset, Surrogate, extrapolation_rmse, extrapolation_split, fit
from models.errors import SluiceError
from models.operations import Reviewing
from pipelines.digests import digest_bytes
from pipelines.model_artifact import ChangedModel, verify
from pipelines.registry import (
    CHALLENGER,
    CHAMPION,
    NoSuchModel,
    champion_info,
    find_version,
    list_versions,
    load_champion,
    load_registered,
)
from pipelines.review import ReviewRecord, review, stage
from pipelines.review.record import SlotChange
from pipelines.review.rule import compare, judge
from pipelines.run import PipelineRun
from pipelines.selection import select
from pipelines.selection_record import Coefficients, SelectionRecord
from pipelines.tracking import TRACKING_VARIABLE, open_tracking
from pipelines.workspace import Workspace

ExploredRun = Callable[..., PipelineRun]
JOB = "nexmark-q5"


def reviewed(run: PipelineRun) -> ReviewRecord:
    select(run)
    review(run)
    return run.output("review.json", ReviewRecord)


def aliases(run: PipelineRun) -> dict[int, tuple[str, ...]]:
    return {v.version: v.aliases for v in list_versions(open_tracking(run.workspace), JOB)}


def selection_of(surrogate: Surrogate, version: int) -> SelectionRecord:
    return SelectionRecord(
        job=JOB,
        testbed="simulator",
        run=f"run-{version}",
        model=surrogate.name,
        forced=False,
        coefficients=Coefficients(memory=surrogate.memory, slots=surrogate.slots, intercept=surrogate.intercept),
        loocv={surrogate.name: 1.0},
        extrapolation={},
        reason="by hand.",
        observations=8,
        exploration_digest="",
        experiment="sluice/nexmark-q5",
        mlflow_run_id="",
        model_uri=f"models:/{JOB}/{version}",
        model_version=version,
        model_digest="",
    )


def points(rates: dict[int, float]) -> list[Observation]:
    """One observation for each number of slots."""
    return [
        Observation(run=f"m{slots}", task_slots=slots, memory_mb=4096.0, parallelism={}, mst=mst)
        for slots, mst in rates.items()
    ]


def judged(
    challenger: SelectionRecord,
    present: Sequence[Observation],
    champion: SelectionRecord | None,
    past: Sequence[Observation] | None,
    limits: Reviewing | None = None,
    slots: SlotChange | None = None,
) -> ReviewRecord:
    compared = compare(challenger, present, champion, past)
    return judge(challenger, champion, compared, "run", limits or Reviewing(), slots)


LINE = {slots: 100.0 * slots for slots in (1, 2, 3, 4, 5, 6, 7, 8)}


def test_the_first_model_becomes_the_champion(explored: ExploredRun) -> None:
    run = explored()
    record = reviewed(run)
    assert (record.verdict, record.champion) == ("approved by rule", None)
    assert record.reason == "there is no champion to compare it with"
    assert aliases(run) == {1: (CHALLENGER, CHAMPION)}
    assert load_champion(run.workspace, JOB).uri == record.champion_uri == "models:/nexmark-q5/1"


@pytest.fixture(scope="module")
def best_and_worse(
    tmp_path_factory: pytest.TempPathFactory,
    make_tracked_workspace: Callable[[Path], Workspace],
    explored_in: Callable[[Workspace], ExploredRun],
) -> tuple[PipelineRun, PipelineRun]:
    """Two runs, reviewed; the second's model is worse. For tests that change nothing."""
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv(TRACKING_VARIABLE, raising=False)
        explored = explored_in(make_tracked_workspace(tmp_path_factory.mktemp("review") / "workspace"))
        best, worse = explored("best", observations=19), explored("worse", observations=19, model="log")
        for run in (best, worse):
            reviewed(run)
        assert mlflow.active_run() is None
        assert TRACKING_VARIABLE not in os.environ, "what is current in MLflow is as it was"
    return best, worse


def test_a_challenger_that_is_worse_stays_challenger(
    best_and_worse: tuple[PipelineRun, PipelineRun], q5_observations: tuple[Observation, ...]
) -> None:
    best, worse = best_and_worse
    record = worse.output("review.json", ReviewRecord)
    data = Dataset.of(q5_observations[:19])
    assert record.verdict == "rejected"
    assert record.champion is not None
    assert record.champion.rmse == pytest.approx(extrapolation_rmse(record.champion.model, data))
    assert record.challenger.rmse == pytest.approx(extrapolation_rmse("log", data))
    assert aliases(best) == {2: (CHALLENGER,), 1: (CHAMPION,)}
    assert load_champion(best.workspace, JOB).surrogate == fit(record.champion.model, data)
    assert load_registered(best.workspace, JOB, 2).surrogate == fit("log", data)


def test_a_challenger_that_is_not_worse_takes_over(explored: ExploredRun) -> None:
    first, second = explored("first", observations=19, model="log"), explored("second", observations=19)
    reviewed(first)
    record = reviewed(second)
    assert record.verdict == "approved by rule"
    assert aliases(first) == {2: (CHALLENGER, CHAMPION), 1: ()}
    again = explored("again", observations=19)
    assert reviewed(again).verdict == "approved by rule", "an equal model is not worse, and the newer one is taken"


def test_the_verdict_is_told_where_people_look(explored: ExploredRun) -> None:
    run = explored()
    record = reviewed(run)
    tracking = open_tracking(run.workspace)
    info = find_version(tracking, JOB, CHAMPION)
    assert (info.review, info.review_reason) == ("approved by rule", record.reason)
    assert "fitted on 14 observations of 9 to 48 task slots and 32,768 to 65,536 MiB" in info.description
    assert f"**Approved by rule**: {record.reason}" in info.description
    parent = tracking.client.get_run(info.selection.mlflow_run_id)
    assert parent.data.tags["sluice.review"] == "approved by rule"
    for said, meant in (("kept back", "rejected"), ("promoted", "approved by rule")):  # as earlier versions wrote it
        tracking.client.set_model_version_tag(JOB, "1", "sluice.review", said)
        assert find_version(tracking, JOB, 1).review == meant


def test_a_review_is_not_repeated(explored: ExploredRun) -> None:
    run = explored()
    record = reviewed(run)
    reviewed(explored("other", observations=19))
    assert reviewed(run) == record


@pytest.mark.parametrize("killed_in", ["promote", "_tell"])
def test_a_review_that_was_killed_decides_the_same(
    explored: ExploredRun, monkeypatch: pytest.MonkeyPatch, killed_in: str
) -> None:
    class Killed(BaseException):
        pass

    real = getattr(stage, killed_in)

    def kill_after(*arguments: Any) -> None:
        real(*arguments)
        raise Killed

    reviewed(explored("first", observations=19, model="log"))
    run = explored("second", observations=19)
    with monkeypatch.context() as patch:
        patch.setattr(stage, killed_in, kill_after)
        with pytest.raises(Killed):
            reviewed(run)
    record = reviewed(run)
    assert record.champion is not None
    assert (record.verdict, record.champion.uri) == ("approved by rule", "models:/nexmark-q5/1")


def test_both_are_fitted_to_the_lower_half_only() -> None:
    """Of 8 points the lower 4 train. The champion learned a line of another slope, and is refitted on its own points."""
    challenger = selection_of(Surrogate(name="linear", memory=0.0, slots=100.0, intercept=0.0), 2)
    champion = selection_of(Surrogate(name="linear", memory=0.0, slots=90.0, intercept=0.0), 1)
    past = points({slots: 90.0 * slots for slots in range(1, 9)})
    record = judged(challenger, points(LINE), champion, past)
    assert record.held_out is not None
    assert (record.held_out.observations, record.held_out.min_task_slots, record.held_out.max_task_slots) == (4, 5, 8)
    assert record.champion is not None
    assert (record.challenger.fitted_on, record.champion.fitted_on) == (4, 4)
    assert record.challenger.rmse == pytest.approx(0.0, abs=1e-9)
    # The champion is 10 records/s short for every slot: sqrt(mean(50^2, 60^2, 70^2, 80^2)).
    assert record.champion.rmse == pytest.approx(65.955, abs=1e-3)
    assert record.verdict == "approved by rule"


def test_a_champion_without_low_observations_is_scored_as_registered() -> None:
    challenger = selection_of(Surrogate(name="linear", memory=0.0, slots=100.0, intercept=0.0), 2)
    champion = selection_of(Surrogate(name="linear", memory=0.0, slots=100.0, intercept=10.0), 1)
    for past in (None, points({slots: 100.0 * slots for slots in (4, 20, 40, 80)})):
        record = judged(challenger, points(LINE), champion, past)
        assert record.champion is not None
        assert (record.champion.fitted_on, record.champion.rmse) == (None, pytest.approx(10.0))
        assert "scored as registered" in record.reason


def test_held_out_points_do_not_train_the_champion() -> None:
    """The cut may lie among points of the same slots; those of the upper half are left out by what they are."""
    present = points(LINE)[:3] + [
        Observation(run=f"t{i}", task_slots=4, memory_mb=4096.0 + i, parallelism={}, mst=400.0 + i) for i in range(3)
    ]
    split = extrapolation_split(Dataset.of(present))
    assert split is not None and split[0].task_slots.max() == 3
    present = [*points(LINE)[:2], *present[3:], *points({9: 900.0})]
    split = extrapolation_split(Dataset.of(present))
    assert split is not None and split[0].task_slots.max() == 4 == split[1].task_slots.min()
    surrogate = Surrogate(name="linear", memory=0.0, slots=100.0, intercept=0.0)
    record = judged(selection_of(surrogate, 2), present, selection_of(surrogate, 1), present)
    assert record.champion is not None
    assert record.champion.fitted_on == record.challenger.fitted_on == len(split[0])
    assert record.champion.rmse == record.challenger.rmse


def test_observations_that_cannot_be_split_promote_nobody() -> None:
    surrogate = Surrogate(name="linear", memory=0.0, slots=100.0, intercept=0.0)
    few = points({1: 100.0, 2: 200.0, 3: 300.0, 4: 400.0})
    record = judged(selection_of(surrogate, 2), few, selection_of(surrogate, 1), few)
    assert (record.verdict, record.held_out) == ("rejected", None)
    assert "approve it by hand" in record.reason
    assert judged(selection_of(surrogate, 1), few, None, None).verdict == "approved by rule"


def test_a_model_that_falls_with_the_slots_is_never_promoted() -> None:
    falling = selection_of(Surrogate(name="linear", memory=0.0, slots=-1.0, intercept=9.0), 1)
    record = judged(falling, points(LINE), None, None)
    assert (record.verdict, record.champion_uri) == ("rejected", None)


BETTER = selection_of(Surrogate(name="linear", memory=0.0, slots=100.0, intercept=0.0), 2)
WORSE_FIT = {slots: 100.0 * slots + (12.0 if slots > 4 else 0.0) for slots in range(1, 9)}
"""A line through the lower half is 12 records/s short of the upper half."""


def champion_with_error_of(rmse: float) -> tuple[SelectionRecord, list[Observation]]:
    """A champion whose line, fitted on its own lower half, is `rmse` short of the upper half of WORSE_FIT."""
    past = {slots: 100.0 * slots + 12.0 - rmse for slots in range(1, 9)}
    return selection_of(Surrogate(name="linear", memory=0.0, slots=100.0, intercept=12.0 - rmse), 1), points(past)


@pytest.mark.parametrize(
    ("mode", "allowed", "verdict"),
    [
        ("rule", 0.0, "rejected"),  # 12 is worse than 10
        ("rule", 0.2, "approved by rule"),  # by 20 %
        ("rule", 0.19, "rejected"),
        ("person-beyond-limits", 0.2, "approved by rule"),
        ("person-beyond-limits", 0.19, "pending"),
        ("person", 0.2, "pending"),
    ],
)
def test_a_rule_approves_alone_inside_the_limits_of_the_job_file(mode: str, allowed: float, verdict: str) -> None:
    champion, past = champion_with_error_of(10.0)
    limits = Reviewing.model_validate({"mode": mode, "max_error_increase": allowed})
    record = judged(BETTER, points(WORSE_FIT), champion, past, limits)
    assert record.champion is not None
    assert (record.challenger.rmse, record.champion.rmse) == (pytest.approx(12.0), pytest.approx(10.0))
    assert record.verdict == verdict
    assert record.champion_uri == ("models:/nexmark-q5/2" if verdict == "approved by rule" else champion.model_uri)


@pytest.mark.parametrize(
    ("challenger", "verdict", "remark"),
    [
        (120, "approved by rule", r"change by \+20%, within the 20% allowed"),
        (121, "pending", r"change by \+21%, and at most 20% is allowed"),
        (79, "pending", r"change by -21%, and"),
        (None, "pending", "is not known, and at most 20% is allowed"),
    ],
)
def test_a_person_is_asked_where_the_plan_would_change_too_much(
    challenger: int | None, verdict: str, remark: str
) -> None:
    champion, past = champion_with_error_of(12.0)
    limits = Reviewing(mode="person-beyond-limits", max_slot_change=0.2)
    slots = SlotChange(rate=1000.0, headroom=1.1, memory_mb=4096.0, challenger=challenger, champion=100)
    record = judged(BETTER, points(WORSE_FIT), champion, past, limits, slots)
    assert record.verdict == verdict
    assert re.search(remark, record.reason)


def test_a_model_that_falls_with_the_slots_is_no_question_for_a_person() -> None:
    falling = selection_of(Surrogate(name="linear", memory=0.0, slots=-1.0, intercept=9.0), 1)
    assert judged(falling, points(LINE), None, None, Reviewing(mode="person")).verdict == "rejected"


def test_both_are_evaluated_side_by_side_in_one_run_that_says_what_approving_changes(
    best_and_worse: tuple[PipelineRun, PipelineRun],
) -> None:
    run = best_and_worse[1]
    record = run.output("review.json", ReviewRecord)
    client = open_tracking(run.workspace).client
    info = find_version(open_tracking(run.workspace), JOB, 2)
    assert record.mlflow_run_id is not None and record.champion is not None and record.slots is not None
    assert info.review_run_id == record.mlflow_run_id
    logged = client.get_run(record.mlflow_run_id)
    assert logged.info.status == "FINISHED"
    metrics, tags = logged.data.metrics, logged.data.tags
    assert metrics["challenger.root_mean_squared_error"] == pytest.approx(record.challenger.rmse)
    assert metrics["champion.root_mean_squared_error"] == pytest.approx(record.champion.rmse)
    assert metrics["challenger.task_slots"] == record.slots.challenger
    assert (tags["sluice.review"], tags["sluice.job"]) == ("rejected", JOB)
    assert tags["sluice.validation"].startswith("failed: Metric challenger.root_mean_squared_error")
    version_tags = client.get_model_version(JOB, "2").tags
    for name in ("sluice.topology", "sluice.code_version", "sluice.job"):
        assert version_tags[name] == tags[name]

    names = {a.path for a in client.list_artifacts(record.mlflow_run_id)}
    assert names == {"growth.png", "predicted.png", "held_out.csv", "review.json"}
    table = pd.read_csv(client.download_artifacts(record.mlflow_run_id, "held_out.csv"))
    assert np.sqrt((table.champion_error**2).mean()) == pytest.approx(record.champion.rmse)
    assert (table.challenger - table.mst).to_numpy() == pytest.approx(table.challenger_error.to_numpy())
    asked = (
        f"asks for {record.slots.challenger:,} task slots with the challenger, and for {record.slots.champion:,} with"
    )
    assert asked in info.description
    assert f"#/experiments/{logged.info.experiment_id}/runs/{record.mlflow_run_id}" in info.description


def test_no_champion_is_an_error_that_says_how_to_get_one(explored: ExploredRun) -> None:
    run = explored()
    with pytest.raises(NoSuchModel, match="sluice plan nexmark-q5"):
        load_champion(run.workspace, JOB)
    assert champion_info(run.workspace, JOB) is None
    reviewed(run)
    info = champion_info(run.workspace, JOB)
    assert info is not None and info.uri == "models:/nexmark-q5/1"


def model_file(run: PipelineRun) -> Path:
    (path,) = run.workspace.local_folder("mlflow").rglob("model.skops")
    return path


def test_a_file_that_was_exchanged_is_refused(explored: ExploredRun) -> None:
    run = explored()
    reviewed(run)
    path = model_file(run)
    path.write_bytes(path.read_bytes() + b" ")
    with pytest.raises(ChangedModel, match=r"models:/nexmark-q5/1 is not what was registered: its file has the digest"):
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
    selection["coefficients"]["slots"] *= 2
    tracking.client.set_model_version_tag(JOB, "1", "sluice.selection", json.dumps(selection))
    with pytest.raises(ChangedModel, match="the selection in the registry is not the one in"):
        load_champion(run.workspace, JOB)
    run.workspace.delete(run.key("selection.json"))
    with pytest.raises(ChangedModel, match="has the coefficients"):
        load_champion(run.workspace, JOB)


def pipeline_file(function: Any, surrogate: Surrogate) -> bytes:
    regression = LinearRegression()
    regression.coef_ = np.array([surrogate.memory, surrogate.slots])
    regression.intercept_, regression.n_features_in_ = surrogate.intercept, 2
    content: bytes = skops.io.dumps(
        Pipeline([("transform", FunctionTransformer(function)), ("regression", regression)])
    )
    return content


def test_a_file_with_the_coefficients_of_another_function_is_refused() -> None:
    log = Surrogate(name="log", memory=1.0, slots=2.0, intercept=3.0)
    content = pipeline_file(np.log1p, log)
    verify(content, digest_bytes(content), log)
    content = pipeline_file(np.sqrt, log)  # the same numbers, behind another function
    with pytest.raises(ChangedModel, match="does not predict what the surrogate 'log' does"):
        verify(content, digest_bytes(content), log)


def test_a_file_that_would_run_code_is_refused_whatever_its_digest() -> None:
    surrogate = Surrogate(name="log", memory=1.0, slots=2.0, intercept=3.0)
    content = pipeline_file(shutil.rmtree, surrogate)
    with pytest.raises(ChangedModel, match="types that are not trusted"):
        verify(content, digest_bytes(content), surrogate)
