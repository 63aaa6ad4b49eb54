"""What the stage `select` leaves: the chosen surrogate, why it was chosen, and where its registered model is."""

from typing import Final, Literal

from pydantic import Field

from models.capacity.surrogates import Surrogate, SurrogateName
from models.schema import SCHEMA_VERSION, Format, NonNegative, PositiveInt

SELECTION_FILE: Final = "selection.json"


class Coefficients(Format):
    """a, b and c of StreamBed Eq. 6-8."""

    memory: float = Field(allow_inf_nan=False, description="a, on the (transformed) memory of a TaskManager in MiB.")
    slots: float = Field(allow_inf_nan=False, description="b, on the (transformed) task slots.")
    intercept: float = Field(allow_inf_nan=False, description="c, records/s.")


class SelectionRecord(Format):
    """One selection and the model version that it made. Errors are RMSE in records/s."""

    schema_version: Literal[1] = SCHEMA_VERSION
    job: str
    run: str = Field(description="Pipeline run that selected it.")
    testbed: str = Field(description="Where its observations were made.")
    model: SurrogateName
    forced: bool = Field(description="Whether the request named the surrogate.")
    coefficients: Coefficients
    loocv: dict[str, NonNegative] = Field(description="Leave-one-out error of each candidate.")
    extrapolation: dict[str, NonNegative] = Field(
        description="Error of each candidate on the upper half by task slots, fitted on the lower half; empty where "
        "the observations cannot be split."
    )
    reason: str
    observations: PositiveInt = Field(description="Number of observations it was fitted on.")
    exploration_digest: str = Field(description="Of the exploration they are in.")
    experiment: str
    mlflow_run_id: str
    model_uri: str = Field(description="Registered model and version, for example 'models:/nexmark-q5/3'.")
    model_version: PositiveInt
    model_digest: str = Field(description="SHA-256 of the model's file.")

    @property
    def surrogate(self) -> Surrogate:
        c = self.coefficients
        return Surrogate(name=self.model, memory=c.memory, slots=c.slots, intercept=c.intercept)
