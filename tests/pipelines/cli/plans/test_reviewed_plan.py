"""`sluice plan` of a job whose models a person reviews: it stops, and the same command goes on when one has decided."""

from pathlib import Path

import pytest
import yaml

from pipelines.cli import run as sluice
from pipelines.store.plans import PlanStore
from pipelines.store.workspace import Workspace

pytestmark = pytest.mark.slow


def test_a_plan_waits_for_a_person_and_the_same_command_goes_on(
    root: Path, tmp_path: Path, tracked_workspace: Workspace, capsys: pytest.CaptureFixture[str]
) -> None:
    document = yaml.safe_load((root / "jobs" / "nexmark-q5.yaml").read_text())
    job = tmp_path / "nexmark-q5.yaml"
    job.write_text(yaml.safe_dump(document | {"sql": None, "operations": {"review": {"mode": "person"}}}))
    measurements = str(root / "tests/data/streambed/search_q5.csv")
    given = [
        "--testbed",
        "recorded",
        "--measurements",
        measurements,
        "--rows",
        "14",
        "--workspace",
        tracked_workspace.url,
    ]
    command = ["plan", str(job), "--rate", "600000", *given]

    assert sluice(command) == 1
    said = capsys.readouterr()
    assert said.out == ""
    assert (
        "review: models:/nexmark-q5/1 waits for a person's review: there is no champion to compare it with" in said.err
    )
    assert "`sluice models approve nexmark-q5@1 --reason WHY`" in said.err
    assert PlanStore(tracked_workspace).jobs() == []

    decision = ["models", "approve", "nexmark-q5@1", "--reason", "the curve looks right", "--by", "Ada"]
    assert sluice([*decision, "--workspace", tracked_workspace.url]) == 0
    assert sluice([*command, "--json"]) == 0
    assert "review: models:/nexmark-q5/1 approved by Ada: the curve looks right" in capsys.readouterr().err
    plan = PlanStore(tracked_workspace).current("nexmark-q5")
    assert plan.reasons[0] == "planned with the champion models:/nexmark-q5/1"
