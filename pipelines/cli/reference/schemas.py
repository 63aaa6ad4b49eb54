"""JSON Schemas of all file formats, generated from the models."""

import json
from typing import Any

from pydantic import BaseModel

from flink_client.jobs.restart import RestartProgram
from models.capacity.observation import Observation
from models.capacity.observed.record import ObservedJob
from models.cluster import Worker, WorkerOffer
from models.keys.distribution import KeyDistribution
from models.placement.graph.document import Graph
from models.plan.content import Plan
from models.scaling.rates import Rates
from pipelines.apply.applied import Applied
from pipelines.apply.gitops.proposal import Proposal
from pipelines.apply.rehearsal import Rehearsal
from pipelines.arena.choice import PolicyChoice
from pipelines.calendar.record import CalendarChange
from pipelines.calibration.request import Calibration
from pipelines.control.files import AutopilotState, StopSwitch
from pipelines.control.record import AutopilotDecision
from pipelines.inputs.job_files import ClusterFile, JobFile, ProgramFile
from pipelines.inputs.plan_request import PlanRequest
from pipelines.rates.record import RateChangeEvent
from pipelines.store.plans import StoredPlan
from testbeds.simulator.settings import Physics

FORMATS: dict[str, type[BaseModel]] = {
    "applied": Applied,
    "autopilot-decision": AutopilotDecision,
    "autopilot-state": AutopilotState,
    "autopilot-stop": StopSwitch,
    "calendar-change": CalendarChange,
    "calibration": Calibration,
    "cluster": ClusterFile,
    "dataflow": Graph,
    "job": JobFile,
    "key-distribution": KeyDistribution,
    "machine": Physics,
    "observation": Observation,
    "observed-job": ObservedJob,
    "plan": Plan,
    "plan-request": PlanRequest,
    "policy-choice": PolicyChoice,
    "program": ProgramFile,
    "proposal": Proposal,
    "rate-change": RateChangeEvent,
    "rates": Rates,
    "rehearsal": Rehearsal,
    "restart-program": RestartProgram,
    "stored-plan": StoredPlan,
    "worker-offer": WorkerOffer,
}
"""Name of the schema file -> model."""


def schema_of(name: str) -> dict[str, Any]:
    """JSON Schema (draft 2020-12) of one format, as files are written: aliases stand for field names."""
    model = FORMATS[name]
    schema = model.model_json_schema(by_alias=True)
    if model is ClusterFile:
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


def schema_text(name: str) -> str:
    return json.dumps(schema_of(name), indent=2, ensure_ascii=False) + "\n"
