"""JSON Schemas of all file formats, and the field tables of the documentation, made from the models.

`python -m pipelines.schemas [DOCS]` writes both into the documentation folder; a test holds that what is committed is
what the models say.
"""

import json
import re
import sys
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from models.applied import Applied, Effect, VertexChange, VertexEffect
from models.capacity.observation import Observation
from models.cluster import Cluster, FlinkAddress, Worker
from models.dataflow import Edge
from models.job import Cost, Job, Keys, Operator, State, Window
from models.operations import (
    Applying,
    Drifting,
    FlinkRates,
    Operations,
    PrometheusRates,
    RateOrigin,
    Replanning,
    Reviewing,
)
from models.placement.graph import Graph, GraphOperator
from models.plan import (
    CostVector,
    Difference,
    Interval,
    Lineage,
    MemoryChange,
    OperatorPlan,
    ParallelismChange,
    Plan,
)
from models.program import Program, RecordedTable
from models.scaling.rates import Rates
from pipelines.apply.rehearsal import Rehearsal
from pipelines.apply.restart import RestartProgram
from pipelines.calibration.request import Calibration, Comparison
from pipelines.evaluation.choice import PolicyChoice, PolicyTotal, WorkloadWinner
from pipelines.plan_store import StoredPlan
from pipelines.rates.record import ToldChange
from pipelines.run import PlanRequest
from testbeds.simulator.settings import Physics

FORMATS: dict[str, type[BaseModel]] = {
    "applied": Applied,
    "calibration": Calibration,
    "cluster": Cluster,
    "dataflow": Graph,
    "job": Job,
    "machine": Physics,
    "observation": Observation,
    "plan": Plan,
    "plan-request": PlanRequest,
    "policy-choice": PolicyChoice,
    "program": Program,
    "rate-change": ToldChange,
    "rates": Rates,
    "rehearsal": Rehearsal,
    "restart-program": RestartProgram,
    "stored-plan": StoredPlan,
}
"""Name of the schema file -> model."""

TABLES: dict[str, type[BaseModel]] = {
    model.__name__: model
    for model in (
        StoredPlan,
        Plan,
        OperatorPlan,
        CostVector,
        Interval,
        Lineage,
        Difference,
        ParallelismChange,
        MemoryChange,
        Applied,
        VertexChange,
        Effect,
        VertexEffect,
        RestartProgram,
        Job,
        Operator,
        Cost,
        Window,
        Keys,
        State,
        Operations,
        Replanning,
        RateOrigin,
        PrometheusRates,
        FlinkRates,
        Applying,
        Reviewing,
        Drifting,
        Edge,
        GraphOperator,
        Cluster,
        Worker,
        FlinkAddress,
        Program,
        RecordedTable,
        PolicyChoice,
        WorkloadWinner,
        PolicyTotal,
        Calibration,
        Comparison,
    )
}
"""Models whose fields a page lists between `<!-- fields: NAME -->` and `<!-- end -->`."""

_MARKED = re.compile(r"(<!-- fields: (\w+) -->\n).*?(<!-- end -->)", re.DOTALL)
_BOUNDS = (("minimum", "≥"), ("exclusiveMinimum", ">"), ("maximum", "≤"), ("exclusiveMaximum", "<"))


def schema_of(name: str) -> dict[str, Any]:
    """JSON Schema (draft 2020-12) of one format, as files are written: aliases stand for field names."""
    model = FORMATS[name]
    schema = model.model_json_schema(by_alias=True)
    if model is Cluster:
        schema = _with_equal_workers(schema)
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema}


def _with_equal_workers(cluster: dict[str, Any]) -> dict[str, Any]:
    """Adds the short form `{"count": 4, "slots": 4, ...}`, which the model expands before it validates."""
    worker = Worker.model_json_schema()["properties"]
    shared = {name: rule for name, rule in worker.items() if name != "name"}
    count = {"description": "Number of equal workers tm-1, tm-2, ...", "minimum": 1, "type": "integer"}
    return {
        **cluster,
        "properties": {**cluster["properties"], "count": count, **shared},
        "required": [],
        "oneOf": [{"required": ["workers"]}, {"required": ["count", "slots"]}],
        "dependentRequired": {name: ["count"] for name in shared},
    }


def table_of(model: type[BaseModel]) -> str:
    """Markdown table of a model's fields."""
    schema = model.model_json_schema(by_alias=True)
    lines = ["| field | type | meaning |", "|---|---|---|"]
    for name, rule in schema["properties"].items():
        lines.append(f"| `{name}` | {_type(rule)}{_default(name, rule, schema)} | {rule.get('description', '')} |")
    return "\n".join(lines) + "\n"


def _default(name: str, rule: dict[str, Any], schema: dict[str, Any]) -> str:
    """What is taken where a field is absent; nothing for a field that must be there."""
    if name in schema.get("required", []):
        return ""
    default = rule.get("default")
    return ", optional" if default in (None, "", [], {}) or "const" in rule else f", else {default}"


def _type(rule: dict[str, Any]) -> str:
    """The type of a field in words."""
    if "anyOf" in rule:
        return " or ".join(_type(option) for option in rule["anyOf"])
    if "$ref" in rule:
        return str(rule["$ref"]).rsplit("/", 1)[-1]
    if "const" in rule:
        return f"always {rule['const']}"
    if rule.get("type") == "array":
        return f"list of {_type(rule['items'])}"
    if rule.get("type") == "object" and isinstance(rule.get("additionalProperties"), dict):
        return f"map to {_type(rule['additionalProperties'])}"
    bounds = [f"{sign} {rule[bound]:g}" for bound, sign in _BOUNDS if bound in rule]
    name = "text" if rule["type"] == "string" else str(rule["type"])
    return f"{name} {' and '.join(bounds)}".rstrip()


def with_tables(page: str) -> str:
    """A page of the documentation with its field tables as the models are now."""
    return _MARKED.sub(lambda match: match[1] + table_of(TABLES[match[2]]) + match[3], page)


def schema_text(name: str) -> str:
    return json.dumps(schema_of(name), indent=2, ensure_ascii=False) + "\n"


def write(docs: Path) -> list[Path]:
    """Write all schemas and bring the tables of all pages up to date; returns the files written."""
    (docs / "schemas").mkdir(parents=True, exist_ok=True)
    texts = {docs / "schemas" / f"{name}.json": schema_text(name) for name in FORMATS}
    texts |= {page: with_tables(page.read_text(encoding="utf-8")) for page in sorted(docs.glob("*.md"))}
    changed = [path for path, text in texts.items() if not path.exists() or path.read_text(encoding="utf-8") != text]
    for path in changed:
        path.write_text(texts[path], encoding="utf-8")
    return changed


if __name__ == "__main__":
    for written in write(Path(sys.argv[1] if len(sys.argv) > 1 else "docs")):
        print(f"wrote {written}")
