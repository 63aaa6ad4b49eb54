"""Notices of events of autopilots."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from answering.hearing import heard
from sluice_airflow.tasks.piloting import report


def event(kind: str, **more: str) -> dict[str, Any]:
    at = datetime(2026, 11, 24, 12, tzinfo=UTC).isoformat()
    common = {"number": 1, "at": at, "policy": "ds2", "before": {}, "after": {}, "downtime_s": None}
    return {**common, "job": "clicks", "kind": kind, "reason": "for a reason", **more}


def test_failures_and_a_spent_budget_are_told_and_rescales_are_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kinds = ("rescaled", "refused", "failed", "rolled-back", "budget-spent")
    with heard(tmp_path, monkeypatch) as notices:
        asked = event("permission-needed", rules="d1")
        assert report([*(event(kind) for kind in kinds), asked, asked]) == [{"job": "clicks", "rules": "d1"}]
    assert [one["kind"] for one in notices] == ["apply-failed", "apply-failed", "apply-failed", "budget-spent"]
    assert notices[0]["text"] == "a rescale of clicks was refused: for a reason"
    assert notices[-1]["text"] == "clicks has spent its lateness budget: for a reason"
