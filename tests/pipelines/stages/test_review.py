"""The rule of the review, and what it moves."""

import os
import re
from collections.abc import Callable, Sequence
from math import comb
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from known_answers.capacity_laws import line
from models.capacity.growth.capacity_model import CapacityModel
from models.capacity.growth.dataset import Dataset
from models.capacity.growth.regressions import fit_regression
from models.capacity.observation import Observation
from models.capacity.sizing import Margin
from pipelines.inputs.operations.operations import Reviewing
from pipelines.registry.models import (
    CHALLENGER,
    CHAMPION,
    NoSuchModel,
    find_version,
    list_versions,
    load_champion,
    load_registered,
    selection_tag,
)
from pipelines.registry.review.record import ReviewRecord, SlotChange
from pipelines.registry.review.rule import FittedModel, gather_evidence, judge, most_missed
from pipelines.registry.selection_record import SelectionRecord
from pipelines.registry.tracking import TRACKING_VARIABLE, open_tracking
from pipelines.run import PipelineRun
from pipelines.stages import review as stage
from pipelines.stages.review import review
from pipelines.stages.select import select
from pipelines.store.workspace import Workspace

ExploredRun = Callable[..., PipelineRun]
JOB = "nexmark-q5"


def reviewed(run: PipelineRun) -> ReviewRecord:
    select(run)
    review(run)
    return run.output("review.json", ReviewRecord)


def aliases(run: PipelineRun) -> dict[int, tuple[str, ...]]:
    return {v.version: v.aliases for v in list_versions(open_tracking(run.workspace), JOB)}


def selection_of(version: int) -> SelectionRecord:
    return SelectionRecord(
        job=JOB,
        testbed="simulator",
        run=f"run-{version}",
        model="linear",
        forced=False,
        weights={"linear": 1.0},
        loocv={"linear": 1.0},
        loocv_rmse=1.0,
        reason="by hand.",
        observations=8,
        exploration_digest="",
        experiment="sluice/nexmark-q5",
        mlflow_run_id="",
        model_uri=f"models:/{JOB}/{version}",
        model_version=version,
        model_digest="",
        capacity_digest="",
    )


def points(rates: dict[int, float]) -> list[Observation]:
    """One observation for each number of slots."""
    return [
        Observation(run=f"m{slots}", task_slots=slots, memory_mb=4096.0, parallelism={}, mst=mst)
        for slots, mst in rates.items()
    ]


def fitted(
    capacity: CapacityModel, version: int, seen: Sequence[Observation], kept_back: Sequence[Observation] = ()
) -> FittedModel:
    return FittedModel(selection_of(version), capacity, tuple(seen), tuple(kept_back))


def judged(
    challenger: FittedModel,
    champion: FittedModel | None = None,
    limits: Reviewing | None = None,
    slots: SlotChange | None = None,
) -> ReviewRecord:
    evidence = gather_evidence(challenger, champion)
    before = None if champion is None else champion.selection
    grows = challenger.capacity.grows
    return judge(challenger.selection, grows, before, evidence, "run", limits or Reviewing(), slots)


WAVY = {1: 101.0, 2: 199.0, 4: 401.0, 6: 599.0, 8: 801.0, 10: 999.0}
"""What a line of slope 100 is fitted to; measurements vary by 1 record/s."""
UNSEEN = {3: 300.0, 5: 500.0, 7: 700.0, 9: 900.0}


def test_a_first_model_that_passes_the_bar_becomes_the_champion(explored: ExploredRun) -> None:
    run = explored()
    record = reviewed(run)
    assert (record.verdict, record.champion) == ("approved by rule", None)
    assert record.held_out is not None and record.held_out.observations == 8
    assert "passes the bar for a first model: on 8 observations that it has not seen" in record.reason
    assert aliases(run) == {1: (CHALLENGER, CHAMPION)}
    assert load_champion(run.workspace, JOB).uri == record.champion_uri == "models:/nexmark-q5/1"


def test_a_first_model_without_evidence_waits_for_a_person(explored: ExploredRun) -> None:
    run = explored(kept_back=2)
    record = reviewed(run)
    assert (record.verdict, record.held_out, record.champion_uri) == ("pending", None, None)
    assert "there must be at least 3 observations that it was not fitted to" in record.reason
    assert aliases(run) == {1: (CHALLENGER,)}


def test_a_first_model_that_misses_the_bar_waits_for_a_person(explored: ExploredRun) -> None:
    """A line through 15 rows of q5 misses what the later rows show."""
    record = reviewed(explored(observations=15, model="linear"))
    assert record.verdict == "pending"
    assert "misses the bar for a first model: on 7 observations" in record.reason


@pytest.mark.parametrize(("observations", "allowed"), [(3, 1), (5, 2), (8, 2), (16, 3), (30, 5)])
def test_the_bar_allows_as_many_misses_as_honest_intervals_have(observations: int, allowed: int) -> None:
    assert most_missed(observations) == allowed
    tails = [sum(comb(observations, k) * 0.05**k * 0.95 ** (observations - k) for k in range(m + 1, observations + 1))
             for m in (allowed - 1, allowed)]  # fmt: skip
    assert tails[0] > 0.01 >= tails[1]


def test_models_of_different_testbeds_are_never_compared(explored: ExploredRun) -> None:
    first = explored("first")
    reviewed(first)
    tracking = open_tracking(first.workspace)
    selection = find_version(tracking, JOB, 1).selection
    moved = selection.model_copy(update={"testbed": "flink"})
    tracking.client.set_model_version_tag(JOB, "1", "sluice.selection", selection_tag(moved))
    second = explored("second", observations=18)
    record = reviewed(second)
    assert (record.verdict, record.champion) == ("approved by rule", None)
    assert "the champion models:/nexmark-q5/1 was measured on another testbed (flink)" in record.reason
    assert record.champion_uri == "models:/nexmark-q5/1"
    assert aliases(second) == {2: (CHALLENGER,), 1: (CHAMPION,)}


@pytest.fixture(scope="module")
def best_and_worse(
    tmp_path_factory: pytest.TempPathFactory,
    make_tracked_workspace: Callable[[Path], Workspace],
    explored_in: Callable[[Workspace], ExploredRun],
) -> tuple[PipelineRun, PipelineRun]:
    """Two runs, reviewed; the second's model is worse. For tests that change nothing."""
    import mlflow

    with pytest.MonkeyPatch.context() as patch:
        patch.delenv(TRACKING_VARIABLE, raising=False)
        explored = explored_in(make_tracked_workspace(tmp_path_factory.mktemp("review") / "workspace"))
        best = explored("best", observations=18, model="log")
        worse = explored("worse", observations=18, model="linear")
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
    data, unseen = Dataset.of(q5_observations[:18]), Dataset.of(q5_observations[18:])
    assert record.verdict == "rejected"
    assert record.champion is not None and record.champion.model == "log"
    for score in (record.champion, record.challenger):
        errors = fit_regression(score.model, data).predict(unseen.memory_mb, unseen.task_slots) - unseen.mst
        assert score.rmse == pytest.approx(np.sqrt(np.mean(errors**2)))
    assert aliases(best) == {2: (CHALLENGER,), 1: (CHAMPION,)}
    assert load_champion(best.workspace, JOB).capacity.regression == fit_regression("log", data)
    assert load_registered(best.workspace, JOB, 2).capacity.regression == fit_regression("linear", data)


def test_a_challenger_that_is_not_worse_takes_over(explored: ExploredRun) -> None:
    first = explored("first", observations=18, model="linear")
    second = explored("second", observations=18, model="log")
    reviewed(first)
    record = reviewed(second)
    assert record.verdict == "approved by rule"
    assert aliases(first) == {2: (CHALLENGER, CHAMPION), 1: ()}
    again = explored("again", observations=18, model="log")
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


def test_a_review_is_not_repeated(explored: ExploredRun) -> None:
    run = explored()
    record = reviewed(run)
    reviewed(explored("other", observations=18))
    assert reviewed(run) == record


@pytest.mark.parametrize("killed_in", ["promote", "_log"])
def test_a_review_that_was_killed_decides_the_same(
    explored: ExploredRun, monkeypatch: pytest.MonkeyPatch, killed_in: str
) -> None:
    class Killed(BaseException):
        pass

    real = getattr(stage, killed_in)

    def kill_after(*arguments: Any) -> None:
        real(*arguments)
        raise Killed

    reviewed(explored("first", observations=18, model="linear"))
    run = explored("second", observations=18, model="log")
    with monkeypatch.context() as patch:
        patch.setattr(stage, killed_in, kill_after)
        with pytest.raises(Killed):
            reviewed(run)
    record = reviewed(run)
    assert record.champion is not None
    assert (record.verdict, record.champion.uri) == ("approved by rule", "models:/nexmark-q5/1")


def test_both_are_judged_as_registered_by_what_neither_was_fitted_to() -> None:
    """The champion is 10 records/s short for every slot: sqrt(mean(30^2, 50^2, 70^2, 90^2))."""
    champion = fitted(line(90.0, error=1.0), 1, points({s: 0.9 * m for s, m in WAVY.items()}))
    record = judged(fitted(line(100.0, error=1.0), 2, points(WAVY), points(UNSEEN)), champion)
    assert record.held_out is not None and record.champion is not None
    assert (record.held_out.observations, record.held_out.min_task_slots, record.held_out.max_task_slots) == (4, 3, 9)
    assert record.challenger.rmse == pytest.approx(0.0, abs=1e-9)
    assert record.champion.rmse == pytest.approx(64.031, abs=1e-3)
    assert (record.challenger.missed, record.champion.missed) == (0, 4)
    assert record.champion.median_error == pytest.approx(0.1)
    assert record.verdict == "approved by rule"


def test_a_perfect_line_does_not_miss_its_intervals_by_rounding() -> None:
    exact = points({slots: 1e5 / 3 * slots for slots in (2, 4, 8, 12, 16)})
    unseen = points({slots: 1e5 / 3 * slots for slots in (3, 5, 7, 9)})
    record = judged(fitted(line(1e5 / 3), 1, exact, unseen))
    assert (record.challenger.missed, record.verdict) == (0, "approved by rule")


def test_what_the_champion_was_fitted_to_is_no_evidence() -> None:
    """The champion has seen two of the challenger's four, and its own run kept back one more, which the challenger saw."""
    seen = points({3: 300.0, 5: 500.0})
    champion = fitted(line(100.0), 1, [*points(WAVY), *seen], points({1: 101.0}))
    challenger = fitted(line(100.0), 2, points(WAVY), points(UNSEEN))
    record = judged(challenger, champion)
    assert (record.verdict, record.held_out) == ("pending", None)
    assert "observations that neither it nor the champion models:/nexmark-q5/1 was fitted to" in record.reason
    newer = fitted(line(100.0), 1, champion.fitted, points({11: 1100.0}))
    record = judged(challenger, newer)
    assert record.held_out is not None and record.held_out.observations == 3


def test_no_mode_promotes_without_evidence() -> None:
    for mode in ("rule", "person-beyond-limits", "person"):
        limits = Reviewing.model_validate({"mode": mode})
        for champion in (None, fitted(line(1.0), 1, points(WAVY))):
            challenger = fitted(line(100.0), 2, points(WAVY), points({3: 300.0, 5: 500.0}))
            record = judged(challenger, champion, limits)
            assert record.verdict == "pending"


def test_a_model_that_falls_with_the_slots_is_never_promoted() -> None:
    record = judged(fitted(line(-1.0, 9.0), 1, points(WAVY), points(UNSEEN)))
    assert (record.verdict, record.champion_uri) == ("rejected", None)


ABOVE = {slots: mst + 12.0 for slots, mst in UNSEEN.items()}
"""SHORT is 12 records/s short of each."""
SHORT = fitted(line(100.0), 2, points(WAVY), points(ABOVE))


def champion_with_error_of(rmse: float) -> FittedModel:
    """A champion that is so many records/s short of ABOVE."""
    return fitted(line(100.0, 12.0 - rmse), 1, points(WAVY))


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
    champion = champion_with_error_of(10.0)
    limits = Reviewing.model_validate({"mode": mode, "max_error_increase": allowed})
    record = judged(SHORT, champion, limits)
    assert record.champion is not None
    assert (record.challenger.rmse, record.champion.rmse) == (pytest.approx(12.0), pytest.approx(10.0))
    assert record.verdict == verdict
    assert record.champion_uri == (
        "models:/nexmark-q5/2" if verdict == "approved by rule" else champion.selection.model_uri
    )


@pytest.mark.parametrize(
    ("challenger", "verdict", "remark"),
    [
        (120, "approved by rule", r"change by \+20%, within the 20% allowed"),
        (121, "pending", r"change by \+21%, and at most 20% is allowed"),
        (79, "pending", r"change by -21%, and"),
        (None, "pending", "is unknown, and at most 20% is allowed"),
    ],
)
def test_a_person_is_asked_where_the_plan_would_change_too_much(
    challenger: int | None, verdict: str, remark: str
) -> None:
    champion = champion_with_error_of(12.0)
    limits = Reviewing(mode="person-beyond-limits", max_slot_change=0.2)
    slots = SlotChange(rate=1000.0, margin=Margin(headroom=1.1), memory_mb=4096.0, challenger=challenger, champion=100)
    record = judged(SHORT, champion, limits, slots)
    assert record.verdict == verdict
    assert re.search(remark, record.reason)


def test_a_model_that_falls_with_the_slots_is_no_question_for_a_person() -> None:
    falling = fitted(line(-1.0, 9.0), 1, points(WAVY), points(UNSEEN))
    assert judged(falling, limits=Reviewing(mode="person")).verdict == "rejected"


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
    reviewed(run)
    assert load_champion(run.workspace, JOB).uri == "models:/nexmark-q5/1"
