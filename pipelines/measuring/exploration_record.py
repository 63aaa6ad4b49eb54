"""The output of the stage `explore`: the observations of a run."""

from collections.abc import Mapping
from typing import Final, Literal

from pydantic import Field

from models.capacity.exploration.question import HelpfulMeasurement
from models.capacity.exploration.space import ExplorationStep
from models.capacity.observation import Budget, Observation
from models.schema import SCHEMA_VERSION, Format, PositiveInt
from pipelines.run import PipelineRun
from pipelines.store.digests import digest
from pipelines.store.workspace import Artifact, Damaged, Missing

EXPLORATION_FILE: Final = "exploration.json"
OBSERVATIONS: Final = "observations"
"""Folder of a run: one file for each measurement, written as soon as it is done."""


class ExplorationRecord(Format):
    """All observations of a run, in the order they were made, and why the exploration ended."""

    schema_version: Literal[1] = SCHEMA_VERSION
    job: str
    testbed: str
    slots_per_worker: PositiveInt = Field(description="Slots that shared the memory of one TaskManager.")
    observations: tuple[Observation, ...] = Field(min_length=1, description="Observations that models are fitted to.")
    kept_back: tuple[Observation, ...] = Field(
        (), description="Observations that no model is fitted to, by which the review judges models."
    )
    steps: tuple[ExplorationStep, ...] = Field(
        description="Suggested budgets, where each comes from, and the error after it."
    )
    stopped_because: str
    # Omitted if absent, so that explorations of earlier versions keep their digests.
    would_help: HelpfulMeasurement | None = Field(
        None,
        exclude_if=lambda helpful: helpful is None,
        description="What would narrow the interval of the slots most; absent where it is narrow enough, or nothing would.",
    )

    @property
    def measured(self) -> tuple[Observation, ...]:
        """All observations, including those kept back."""
        return (*self.observations, *self.kept_back)


def stored_budget(run: PipelineRun, name: str, inputs: Mapping[str, str]) -> Budget | None:
    """The budget of a stored measurement; None if there is none, or it was made from other inputs.

    Args:
        name: of the measurement.
        inputs: digests of its inputs but for the budget.
    """
    key = run.key(OBSERVATIONS, f"{name}.json")
    try:
        found = run.workspace.read(key, Artifact)
        stored = run.workspace.read_output(key, Observation)
    except (Missing, Damaged):
        return None
    return stored.budget if found.inputs == {**inputs, "budget": digest(stored.budget)} else None


def kept_observations(run: PipelineRun) -> list[Observation]:
    """Every stored measurement of the run, including single-task runs; empty for published measurements."""
    names = [key.removeprefix(run.key() + "/") for key in run.workspace.list(run.key(OBSERVATIONS))]
    return [run.output(name, Observation) for name in names]
