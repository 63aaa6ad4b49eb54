"""Gathering the outputs of a run's stages as inputs of planning."""

from models.keys.shares import KeyedInput
from models.planning.inputs import (
    MeasuredCapacity,
    MeasuredOperators,
    PlanningInputs,
    measured_operators,
    stated_operators,
)
from pipelines.keys.inputs import KEYS_FILE, KeyedInputs
from pipelines.measuring.exploration_record import EXPLORATION_FILE, ExplorationRecord
from pipelines.registry.planning_model import planning_model
from pipelines.run import PipelineRun
from pipelines.stages.profile import PROFILE_FILE, ProfileRecord
from pipelines.store.digests import digest, digest_bytes

FEATURES_FILE = "features.parquet"


def gather(run: PipelineRun) -> PlanningInputs:
    """The inputs of a replan of the run's job, with the model bound. Raises as `planning_model` and the others do."""
    capacity = gather_capacity(run)
    return PlanningInputs(capacity, gather_operators(run, capacity), planning_model(run))


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


def operator_digests(run: PipelineRun) -> dict[str, str]:
    """Digests of the inputs of `gather_operators`, by name."""
    digests = {"job": digest(run.job), "exploration": digest(run.output(EXPLORATION_FILE, ExplorationRecord))}
    if run.request.testbed != "recorded":
        digests["features"] = digest_bytes(run.workspace.read_bytes(run.key(FEATURES_FILE)))
        digests["profile"] = digest(run.output(PROFILE_FILE, ProfileRecord))
    return digests
