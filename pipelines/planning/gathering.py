"""Gathering the outputs of a run's stages, and what production showed, as inputs of planning."""

from models.capacity.growth.sustained import Sustained, given
from models.job import Job
from models.keys.shares import KeyedInput
from models.planning.inputs import (
    MeasuredCapacity,
    MeasuredOperators,
    PlanningInputs,
    PlanningModel,
    measured_operators,
    stated_operators,
)
from models.planning.resources import budget_memory_mb
from pipelines.drift.record import DriftReport
from pipelines.drift.reports import drift_key, versions
from pipelines.keys.inputs import KEYS_FILE, KeyedInputs
from pipelines.measuring.exploration_record import EXPLORATION_FILE, ExplorationRecord
from pipelines.registry.planning_model import planning_model
from pipelines.run import PipelineRun
from pipelines.stages.profile import PROFILE_FILE, ProfileRecord
from pipelines.store.digests import digest, digest_bytes
from pipelines.store.plans import PlanStore
from pipelines.store.workspace import Damaged

FEATURES_FILE = "features.parquet"


def gather(run: PipelineRun) -> PlanningInputs:
    """The inputs of a replan of the run's job, with the model bound. Raises as `planning_model` and the others do."""
    capacity = gather_capacity(run)
    return PlanningInputs(capacity, gather_operators(run, capacity), gather_model(run))


def gather_model(run: PipelineRun) -> PlanningModel:
    """The registered model, given the rates that plans of the job took in production. Raises as `planning_model`."""
    model, sustained = planning_model(run), sustained_in_production(run)
    if not sustained or model.capacity.regression is not None:
        return model
    return PlanningModel(
        uri=model.uri,
        mlflow_run_id=model.mlflow_run_id,
        capacity=given(model.capacity, sustained),
        reason=f"{model.reason}, and with what production took: {' and '.join(one.text for one in sustained)}",
        sustained=sustained,
    )


def sustained_in_production(run: PipelineRun) -> tuple[Sustained, ...]:
    """The highest rate that each deployed plan of the job took, by the drift reports that found no drift.

    Plans of another job file do not count, nor production that ran other tasks than the plan's.
    """
    name, store, job = run.job.name, PlanStore(run.workspace), digest(run.job)
    measured_slots = run.output(EXPLORATION_FILE, ExplorationRecord).slots_per_worker
    most: dict[int, float] = {}
    found = []
    try:
        for version in versions(run.workspace, name):
            report = run.workspace.read(drift_key(name, version), DriftReport)
            if report.as_planned and not report.drifted and report.source_rate > 0:
                most[report.plan_version] = max(report.source_rate, most.get(report.plan_version, 0.0))
        for version, rate in most.items():
            plan = store.get(name, version)
            if plan.lineage.digests.get("job") == job:
                took = Sustained(
                    memory_mb=budget_memory_mb(plan, run.job, measured_slots),
                    task_slots=plan.task_slots,
                    rate=rate,
                    plan_version=version,
                )
                found.append(took)
    except Damaged as error:
        run.progress.say(f"what production took is left out: {error}")
        return ()
    return tuple(found)


def gather_capacity(run: PipelineRun) -> MeasuredCapacity:
    """The observations of the run's exploration."""
    exploration = run.output(EXPLORATION_FILE, ExplorationRecord)
    return MeasuredCapacity(run.job, exploration.observations, exploration.slots_per_worker)


def gather_operators(run: PipelineRun, capacity: MeasuredCapacity) -> MeasuredOperators:
    """Rates and unit costs from the run's features or, for published measurements, from the job's file.

    Raises:
        SluiceError: a figure of an operator is missing, since it received no records.
    """
    if run.request.testbed == "recorded":
        return stated_operators(run.job)
    features = run.workspace.read_table(run.key(FEATURES_FILE)).to_pylist()
    profile = run.output(PROFILE_FILE, ProfileRecord)
    return measured_operators(run.job, features, capacity.observations, profile.run)


def gather_keys(run: PipelineRun) -> tuple[KeyedInput, ...]:
    """What the stage `features` found of the keys of operators; empty for published measurements and jobs without keys."""
    if not run.workspace.exists(run.key(KEYS_FILE)):
        return ()
    return run.output(KEYS_FILE, KeyedInputs).inputs


def rate_limits(job: Job) -> dict[str, float]:
    """The rate limits in the job's file, by operator."""
    return {o.name: o.rate_limit for o in job.operators if o.rate_limit is not None}


def operator_digests(run: PipelineRun) -> dict[str, str]:
    """Digests of the inputs of `gather_operators`, by name."""
    digests = {"job": digest(run.job), "exploration": digest(run.output(EXPLORATION_FILE, ExplorationRecord))}
    if run.job.vertices:
        digests["vertices"] = digest(run.job.vertices)
    if limits := rate_limits(run.job):
        digests["rate limits"] = digest(limits)
    if run.request.testbed != "recorded":
        digests["features"] = digest_bytes(run.workspace.read_bytes(run.key(FEATURES_FILE)))
        digests["profile"] = digest(run.output(PROFILE_FILE, ProfileRecord))
    return digests
