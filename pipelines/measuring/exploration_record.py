"""The output of the stage `explore`: the observations of a run."""

from typing import Final, Literal

from pydantic import Field

from models.capacity.exploration import ExplorationStep
from models.capacity.observation import Observation
from models.schema import SCHEMA_VERSION, Format, PositiveInt
from pipelines.run import PipelineRun

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

    @property
    def measured(self) -> tuple[Observation, ...]:
        """All observations, including those kept back."""
        return (*self.observations, *self.kept_back)


def kept_observations(run: PipelineRun) -> list[Observation]:
    """Every stored measurement of the run, including single-task runs; empty for published measurements."""
    names = [key.removeprefix(run.key() + "/") for key in run.workspace.list(run.key(OBSERVATIONS))]
    return [run.output(name, Observation) for name in names]
