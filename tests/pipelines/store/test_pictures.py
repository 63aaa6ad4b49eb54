"""The figures of a report as data: what was drawn comes back, once made they stay, and tampering is seen."""

import json
from pathlib import Path

import plotly.graph_objects as go
import pytest

from models.plan.content import Plan
from pipelines.store.pictures import keep_pictures, pictures_key, read_pictures
from pipelines.store.workspace import Damaged, Missing, Workspace

FIGURE = go.Figure(go.Bar(x=["map", "sink"], y=[3, 1]))


@pytest.fixture
def plan(root: Path) -> Plan:
    return Plan.model_validate_json((root / "tests/data/plans/nexmark-q5-v1.json").read_text())


@pytest.fixture
def workspace(tmp_path: Path, plan: Plan) -> Workspace:
    workspace = Workspace(tmp_path)
    keep_pictures(workspace, plan, {"tasks": FIGURE})
    return workspace


def test_a_figure_comes_back_as_it_was_drawn(workspace: Workspace) -> None:
    figure = read_pictures(workspace, "nexmark-q5", 1).figures["tasks"]
    assert figure == json.loads(FIGURE.to_json())
    assert (figure["data"][0]["x"], figure["data"][0]["y"]) == (["map", "sink"], [3, 1])


def test_figures_that_were_kept_of_the_same_plan_stay(workspace: Workspace, plan: Plan) -> None:
    keep_pictures(workspace, plan, {})
    assert list(read_pictures(workspace, "nexmark-q5", 1).figures) == ["tasks"]
    keep_pictures(workspace, plan.model_copy(update={"created_at": "2030-01-01T00:00:00+00:00"}), {})
    assert read_pictures(workspace, "nexmark-q5", 1).figures == {}


def test_figures_that_were_changed_are_refused(workspace: Workspace) -> None:
    key = pictures_key("nexmark-q5", 1)
    workspace.write_bytes(key, workspace.read_bytes(key).replace(b"map", b"mop"))
    with pytest.raises(Damaged, match="was changed after it was made"):
        read_pictures(workspace, "nexmark-q5", 1)


def test_a_version_without_figures_is_said_to_have_none(workspace: Workspace) -> None:
    with pytest.raises(Missing, match=r"v000002\.figures\.json does not exist"):
        read_pictures(workspace, "nexmark-q5", 2)
