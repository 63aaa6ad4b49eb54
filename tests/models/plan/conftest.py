"""Two versions of one plan."""

from pathlib import Path

import pytest

from models.plan.content import Plan

DATA = Path(__file__).parents[2] / "data" / "plans"


@pytest.fixture
def first() -> Plan:
    return Plan.model_validate_json((DATA / "nexmark-q5-v1.json").read_text())


@pytest.fixture
def second() -> Plan:
    return Plan.model_validate_json((DATA / "nexmark-q5-v2.json").read_text())
