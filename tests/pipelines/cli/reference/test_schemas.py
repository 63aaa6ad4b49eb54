"""The committed schemas are those of the code, and real files pass them."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from jsonschema import Draft202012Validator

from models.plan.content import Plan
from pipelines.cli.reference.schemas import FORMATS, schema_of, schema_text
from pipelines.store.plans import PlanStore
from pipelines.store.workspace import Workspace

ROOT = Path(__file__).parents[4]
PLANS = sorted((ROOT / "tests" / "data" / "plans").glob("*.json"))
HINT = "run `python -m pipelines.cli.reference` and commit what it writes"


def faults(name: str, document: Any) -> list[str]:
    return [error.message for error in Draft202012Validator(schema_of(name)).iter_errors(document)]


@pytest.mark.parametrize("name", FORMATS)
def test_the_committed_schema_is_that_of_the_code(name: str) -> None:
    Draft202012Validator.check_schema(schema_of(name))
    assert (ROOT / "docs" / "schemas" / f"{name}.json").read_text() == schema_text(name), HINT


def test_no_other_schemas_are_committed() -> None:
    assert {path.stem for path in (ROOT / "docs" / "schemas").iterdir()} == set(FORMATS)


@pytest.mark.parametrize("path", sorted((ROOT / "jobs").glob("*.yaml")), ids=lambda path: path.stem)
def test_jobs_of_the_catalogue_pass_the_schema(path: Path) -> None:
    assert faults("job", yaml.safe_load(path.read_text())) == []


@pytest.mark.parametrize("path", sorted((ROOT / "clusters").glob("*.yaml")), ids=lambda path: path.stem)
def test_clusters_of_the_catalogue_pass_the_schema(path: Path) -> None:
    assert faults("cluster", yaml.safe_load(path.read_text())) == []


@pytest.mark.parametrize("path", PLANS, ids=lambda path: path.stem)
def test_plans_pass_the_schema(path: Path) -> None:
    assert faults("plan", json.loads(path.read_text())) == []


def test_the_file_that_the_store_writes_passes_the_schema(tmp_path: Path) -> None:
    workspace = Workspace(tmp_path)
    PlanStore(workspace).append("nexmark-q5", lambda _version, _before: Plan.model_validate_json(PLANS[0].read_text()))
    assert faults("stored-plan", workspace.read_json("plans/nexmark-q5/v000001.json")) == []


@pytest.mark.parametrize(
    ("name", "document"),
    [
        ("dataflow", {"operators": [{"name": "a", "parallelism": 2, "cpu": 0.1, "io": 0, "net": 1}]}),
        (
            "dataflow",
            {
                "name": "two",
                "operators": [
                    {"name": "a", "parallelism": 2, "cpu": 0.1, "io": 0, "net": 1},
                    {"name": "b", "parallelism": 2, "cpu": 0.1, "io": 0, "net": 1, "memory_mb": 158},
                ],
                "edges": [{"from": "a", "to": "b", "partitioning": "hash"}],
            },
        ),
        ("cluster", {"count": 4, "slots": 4}),
        (
            "cluster",
            {"workers": [{"name": "tm-1", "slots": 4, "cores": 4, "memory_mb": 4096, "io": 5e8, "net": 1.25e9}]},
        ),
        (
            "rates",
            {
                "edges": [["source", "flatmap"]],
                "source_rates": {"source": 1e6},
                "operators": {
                    "flatmap": {"parallelism": 1, "true_processing_rate": 1e5, "true_output_rate": 2e6, "busyness": 0.5}
                },
            },
        ),
        ("observation", {"run": "r", "task_slots": 4, "memory_mb": 4096, "parallelism": {"a": 4}, "mst": 1e5}),
        ("plan-request", {"job": "nexmark-q5", "rate": 2.5e6}),
    ],
)
def test_documents_of_the_reference_pass_schema_and_model(name: str, document: dict[str, Any]) -> None:
    assert faults(name, document) == []
    FORMATS[name].model_validate(document)


@pytest.mark.parametrize(
    ("name", "document", "fault"),
    [
        ("cluster", {"slots": 4}, "is a dependency of|not valid under any"),
        ("cluster", {"count": 0, "slots": 4}, "0 is less than the minimum"),
        ("cluster", {"count": 2, "slots": 4, "workers": [{"name": "a", "slots": 1}]}, "valid under each of"),
        ("cluster", {"count": 2, "slots": 4, "gpus": 1}, "gpus"),
        ("dataflow", {"operators": []}, "should be non-empty|too short"),
        ("observation", {"run": "r", "task_slots": 4, "memory_mb": 4096, "parallelism": {"a": 0}, "mst": 1}, "minimum"),
        ("plan-request", {"job": "q5"}, "'rate' is a required property"),
    ],
)
def test_schemas_refuse_what_the_models_refuse(name: str, document: dict[str, Any], fault: str) -> None:
    found = faults(name, document)
    assert any(re.search(fault, message) for message in found), found
    with pytest.raises(ValueError, match=r"."):
        FORMATS[name].model_validate(document)
