"""The output of the stage `review`: how challenger and champion compare, and the verdict."""

from typing import Final, Literal

from pydantic import Field

from models.capacity.sizing import Margin
from models.schema import SCHEMA_VERSION, Format, NonNegative, Positive, PositiveInt
from pipelines.registry.models import Verdict

REVIEW_FILE: Final = "review.json"
RULE: Final = (
    "on at least 3 observations that neither has seen, its RMSE must not be larger than the champion's of the same "
    "testbed; without a champion, its median error must be at most 25 %, and its 95 % intervals must hold as many of them as "
    "honest intervals do"
)


class HeldOut(Format):
    """The observations that models are scored on: none of them was fitted to these."""

    observations: PositiveInt
    min_task_slots: PositiveInt
    max_task_slots: PositiveInt


class Score(Format):
    """How good a model is on the held-out observations; its figures are None where there are too few of them."""

    uri: str
    model: str
    rmse: NonNegative | None = Field(None, description="Records/s.")
    median_error: NonNegative | None = Field(None, description="Median of |predicted / measured - 1|.")
    missed: int | None = Field(None, ge=0, description="Observations outside of their 95 % prediction intervals.")


class SlotChange(Format):
    """What a plan would ask for with either model: the task slots that a rate needs, sources aside."""

    rate: Positive = Field(description="Of the plan in force, else of the request; records/s.")
    margin: Margin = Field(description="How safely it is planned for.")
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
    """The result of the stage. What a person decides afterwards is kept with the registered version."""

    schema_version: Literal[1] = SCHEMA_VERSION
    job: str
    run: str
    verdict: Verdict
    rule: str
    reason: str
    held_out: HeldOut | None = Field(description="None where there are too few.")
    challenger: Score
    champion: Score | None = Field(
        description="The champion before the review; None where there was none of the same testbed."
    )
    champion_uri: str | None = Field(description="The champion after the review.")
    slots: SlotChange | None = None
    mlflow_run_id: str | None = Field(None, description="The review's own run in MLflow.")
