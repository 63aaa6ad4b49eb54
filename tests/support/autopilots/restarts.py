"""Intents of restarts through a savepoint."""

from collections.abc import Mapping
from datetime import UTC, datetime

from pipelines.control.actions.intents import Intent

NEW, FORMER = "2" * 32, "3" * 32
"""Flink's ids of the job that is started, and of the one that is started if that is taken back."""


def restart_intent(
    flink_job: str, names: Mapping[str, str], before: Mapping[str, int], wanted: Mapping[str, int]
) -> Intent:
    """Of an autopilot of the job `p`; all by vertex id."""
    return Intent(
        job="p",
        number=7,
        fence=1,
        intended_at=datetime.now(UTC),
        flink_job=flink_job,
        method="restart",
        purpose="rescale",
        why="the rate has grown",
        names=dict(names),
        before=dict(before),
        wanted=dict(wanted),
        required_before=None,
        savepoint_trigger="4" * 32,
        new_job=NEW,
        former_job=FORMER,
        advice=None,
        decision_s=0.0,
    )
