"""Which model a run plans with: the champion, unless it was asked for another or cannot be compared."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from pipelines.registry.models import (
    APPROVED_BY_RULE,
    CHAMPION,
    PENDING,
    REVIEW_TAG,
    NotReviewed,
    list_versions,
    load_champion,
)
from pipelines.registry.planning_model import ALLOWED, planning_model
from pipelines.registry.review.decision import decide
from pipelines.registry.review.record import ReviewRecord
from pipelines.registry.tracking import open_tracking
from pipelines.run import PipelineRun
from pipelines.stages.review import pending_review, review
from pipelines.stages.select import select

ExploredRun = Callable[..., PipelineRun]


def reviewed(run: PipelineRun) -> PipelineRun:
    select(run)
    review(run)
    return run


def test_a_run_plans_with_the_champion_even_if_its_own_model_is_not(explored: ExploredRun) -> None:
    first = reviewed(explored("first", observations=19))
    second = reviewed(explored("second", observations=14))
    champion = load_champion(first.workspace, "nexmark-q5").uri
    for planned in (first, second):
        chosen = planning_model(planned)
        assert (chosen.uri, chosen.reason) == (champion, f"planned with the champion {champion}")


def test_a_model_that_was_asked_for_is_used_whatever_the_rule_says_but_not_against_a_person(
    explored: ExploredRun,
) -> None:
    reviewed(explored("first", observations=19))
    forced = reviewed(explored("second", observations=19, model="linear"))
    chosen = planning_model(forced)
    assert (chosen.uri, chosen.capacity.name) == ("models:/nexmark-q5/2", "linear")
    assert "asked for linear" in chosen.reason
    decide(forced.workspace, "nexmark-q5", 2, approve=False, by="Ada", reason="it cannot be")
    with pytest.raises(NotReviewed, match=r"nexmark-q5/2 was rejected by Ada \(it cannot be\)"):
        planning_model(forced)


def test_a_run_without_evidence_for_its_model_plans_with_the_champion(explored: ExploredRun) -> None:
    first = reviewed(explored("first", observations=19))
    second = reviewed(explored("second", observations=22))
    assert second.output("review.json", ReviewRecord).verdict == "pending"
    assert pending_review(second) is None
    assert planning_model(second).uri == "models:/nexmark-q5/1"
    named = reviewed(explored("named", observations=22, model="log"))
    assert planning_model(named).reason.endswith("since the request asked for log, which is not reviewed yet")
    assert first.output("review.json", ReviewRecord).verdict == APPROVED_BY_RULE


def test_nothing_is_planned_from_a_first_model_without_evidence(explored: ExploredRun) -> None:
    run = reviewed(explored(kept_back=2))
    asked = pending_review(run)
    assert asked is not None and asked.uri == "models:/nexmark-q5/1"
    with pytest.raises(NotReviewed, match="at least 3 observations that it was not fitted to"):
        planning_model(run)


def test_a_champion_from_another_testbed_is_not_used(explored: ExploredRun) -> None:
    first = reviewed(explored("first", observations=19))
    recorded = reviewed(explored("second", observations=19, testbed="recorded", measurements="search.csv"))
    decide(first.workspace, "nexmark-q5", 1, approve=True, by="Ada", reason="measured on the cluster")
    chosen = planning_model(recorded)
    assert chosen.uri == "models:/nexmark-q5/2"
    assert "the champion models:/nexmark-q5/1 was measured on another testbed (simulator)" in chosen.reason


def with_review(settings: dict[str, object], run: PipelineRun, path: Path) -> PipelineRun:
    """The run, with these settings of reviews in its job's file."""
    document = run.job.model_dump(mode="json", by_alias=True) | {"sql": None, "operations": {"review": settings}}
    path.write_text(yaml.safe_dump(document))
    return replace(run, request=run.request.model_copy(update={"job": str(path)}))


def test_nothing_is_planned_from_a_model_that_waits_for_a_person_until_one_decides(
    explored: ExploredRun, tmp_path: Path
) -> None:
    first = reviewed(explored("first", observations=19))
    waiting = reviewed(with_review({"mode": "person"}, explored("second", observations=19), tmp_path / "a.yaml"))
    assert waiting.output("review.json", ReviewRecord).verdict == "pending"
    assert pending_review(first) is None
    asked = pending_review(waiting)
    assert asked is not None and asked.uri == "models:/nexmark-q5/2"
    with pytest.raises(NotReviewed, match=r"nexmark-q5/2 waits for a review.*sluice models approve nexmark-q5@2"):
        planning_model(waiting)
    assert planning_model(first).uri == "models:/nexmark-q5/1", "what runs is still planned from what was approved"

    allowing = with_review({"mode": "person", "allow_unreviewed": True}, waiting, tmp_path / "b.yaml")
    assert pending_review(allowing) is None, "nobody has to be waited for"
    chosen = planning_model(allowing)
    assert (chosen.uri, chosen.reason) == ("models:/nexmark-q5/2", f"planned with models:/nexmark-q5/2, {ALLOWED}")
    assert "operations.review.allow_unreviewed" in chosen.reason

    decide(first.workspace, "nexmark-q5", 2, approve=False, by="Ada", reason="measured on a busy machine")
    assert (planning_model(waiting).uri, pending_review(waiting)) == ("models:/nexmark-q5/1", None)
    decide(first.workspace, "nexmark-q5", 2, approve=True, by="Ada", reason="it was idle after all")
    assert planning_model(waiting).uri == "models:/nexmark-q5/2"
    newest, before = list_versions(open_tracking(first.workspace), "nexmark-q5")
    assert (newest.review, newest.reviewed_by) == ("approved", "Ada") and CHAMPION in newest.aliases
    assert (before.review, before.reviewed_by) == (APPROVED_BY_RULE, "the rule") and CHAMPION not in before.aliases

    # Whoever moves the alias in MLflow itself has not said that the model may be planned with.
    open_tracking(first.workspace).client.set_model_version_tag("nexmark-q5", "2", REVIEW_TAG, PENDING)
    with pytest.raises(NotReviewed, match="models:/nexmark-q5/2 waits for a review"):
        planning_model(first)
