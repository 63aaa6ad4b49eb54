"""What a person is asked about an autopilot, and for what the answer holds."""

from pathlib import Path
from typing import Any

import pytest

from models.errors import InvalidInput
from pipelines.following.jobs import job_file
from pipelines.inputs.job_files import operations_of
from pipelines.inputs.operations.autopiloting import Autopiloting
from pipelines.piloting.permission import permission_of, rules_digest
from pipelines.store.workspace import Workspace
from sluice_airflow.tasks.piloting import answer, harm, question, report
from workspaces.operated_job import JOB, OperatedJob


class Asked:
    """The autopilot of a job whose rules change."""

    def __init__(self, folder: Path) -> None:
        self.workspace = Workspace(folder / "workspace")
        self._job = OperatedJob(folder, self.workspace)
        self._job.publish(3)

    def says(self, **limits: Any) -> str:
        """Change its limits; returns the digest of its rules."""
        autopilot = {"flink": "http://f:8081", "mode": "approved", "limits": limits}
        self._job.operate({"autopilot": autopilot})
        return rules_digest(self.rules)

    @property
    def rules(self) -> Autopiloting:
        found = operations_of(job_file(self.workspace, JOB)).autopilot
        assert found is not None
        return found

    @property
    def may_act(self) -> bool | None:
        found = permission_of(self.workspace, JOB, self.rules)
        return None if found is None else found.granted


@pytest.fixture
def asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Asked:
    monkeypatch.setenv("SLUICE_WORKSPACE", str(tmp_path / "workspace"))
    return Asked(tmp_path)


def test_a_person_permits_the_rules_that_the_question_showed(asked: Asked) -> None:
    shown = asked.says(most_slots=8)
    said = question(JOB, shown)
    assert said is not None and "Limits: most_slots 8" in said.body
    asked.says(most_slots=100)
    assert "which its file no longer has" in answer(JOB, shown, True, "ada")
    assert asked.may_act is None
    asked.says(most_slots=8)
    assert asked.may_act is True
    assert question(JOB, shown) is None, "it is answered"


def test_nothing_is_asked_about_rules_that_have_changed_since(asked: Asked) -> None:
    before = asked.says(most_slots=8)
    now = asked.says(most_slots=100)
    assert question(JOB, before) is None
    assert question(JOB, now) is not None
    assert answer(JOB, now, False, "ada") == f"the autopilot of {JOB} stays in its dry run, as ada decided"
    assert asked.may_act is False


def test_an_event_that_is_no_autopilot_s_does_not_hide_the_others() -> None:
    common = {"number": 1, "at": "2026-11-24T12:00:00+00:00", "policy": "ds2", "before": {}, "after": {}}
    failed = common | {"downtime_s": None, "job": "clicks", "kind": "failed", "reason": "no slots"}
    asked = failed | {"kind": "permission-needed", "rules": "d1"}
    assert harm([{"job": "views"}, failed]) == "clicks: failed: no slots"
    assert report([{"job": "views"}, asked]) == [{"job": "clicks", "rules": "d1"}]
    with pytest.raises(InvalidInput, match="an event of sluice-autopilot"):
        harm([{"job": "views"}])
