"""What the stage `explore` leaves: the observations of a run."""

from typing import Final, Literal

from pydantic import Field

from models.capacity.exploration import ExplorationStep
from models.capacity.observation import Observation
from models.schema import SCHEMA_VERSION, Format, PositiveInt

EXPLORATION_FILE: Final = "exploration.json"


class ExplorationRecord(Format):
    """All observations of a run, in the order they were made, and why it ended."""

    schema_version: Literal[1] = SCHEMA_VERSION
    job: str
    testbed: str
    slots_per_worker: PositiveInt = Field(description="Slots that the memory of one TaskManager was shared by.")
    observations: tuple[Observation, ...] = Field(min_length=1)
    steps: tuple[ExplorationStep, ...] = Field(description="What was suggested, by whom, and the error after it.")
    stopped_because: str
