"""Two stored versions of a plan."""

from pathlib import Path

import pytest

from models.plan.content import Plan
from pipelines.store.digests import digest
from pipelines.store.plans import StoredPlan
from pipelines.store.workspace import Workspace, to_json

JOB = "nexmark-q5"


@pytest.fixture
def plans(root: Path) -> tuple[Plan, Plan]:
    """Version 1: 32 task slots for 800,000 records/s; version 2: 41."""
    first, second = (root / f"tests/data/plans/{JOB}-v{version}.json" for version in (1, 2))
    return Plan.model_validate_json(first.read_text()), Plan.model_validate_json(second.read_text())


@pytest.fixture
def workspace(tmp_path: Path, plans: tuple[Plan, Plan]) -> Workspace:
    """Holds both."""
    workspace = Workspace(tmp_path)
    for plan in plans:
        content = to_json(StoredPlan(digest=digest(plan), plan=plan))
        workspace.create_bytes(f"plans/{JOB}/v{plan.version:06d}.json", content)
    return workspace
