"""What the stage `review` leaves: how challenger and champion compare, and what follows from it."""

from typing import Final, Literal

from pydantic import Field

from models.schema import SCHEMA_VERSION, Format, NonNegative, Positive, PositiveInt
from pipelines.registry import Verdict

REVIEW_FILE: Final = "review.json"
RULE: Final = (
    "approved if its RMSE on the upper half of the present observations, by task slots, is not larger than the "
    "champion's, each fitted only to observations of its own with no more slots than the lower half"
)


class HeldOut(Format):
    """The observations that both models are scored on."""

    observations: PositiveInt
    min_task_slots: PositiveInt
    max_task_slots: PositiveInt


class Score(Format):
    """How good a model is on the held-out points."""

    uri: str
    model: str
    rmse: NonNegative | None = Field(description="Records/s; None where it was not compared.")
    fitted_on: int | None = Field(description="Observations it was fitted on for this; None: as it is registered.")


class SlotChange(Format):
    """What a plan would ask for with either model: the task slots that a rate needs, sources aside."""

    rate: Positive = Field(description="Of the plan in force, else of the request; records/s.")
    headroom: float = Field(ge=1.0, description="Factor on it that is planned for.")
    memory_mb: Positive = Field(description="Of a TaskManager, MiB.")
    challenger: PositiveInt | None = Field(description="None where it says that the rate is never reached.")
    champion: PositiveInt | None = Field(description="The same; None where there is no champion, too.")

    @property
    def share(self) -> float | None:
        """By which share of the champion's slots the challenger's differ; None where one of them is not known."""
        if self.challenger is None or self.champion is None:
            return None
        return self.challenger / self.champion - 1


class ReviewRecord(Format):
    """A review, as the stage left it. What a person decides afterwards is kept with the registered version."""

    schema_version: Literal[1] = SCHEMA_VERSION
    job: str
    run: str
    verdict: Verdict
    rule: str
    reason: str
    held_out: HeldOut | None = Field(description="None where the observations cannot be split.")
    challenger: Score
    champion: Score | None = Field(description="The champion before the review; None where there was none.")
    champion_uri: str | None = Field(description="The champion after the review.")
    slots: SlotChange | None = None
    mlflow_run_id: str | None = Field(None, description="The review's own run in MLflow.")
