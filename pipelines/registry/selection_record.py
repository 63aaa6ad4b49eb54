"""What the stage `select` leaves: how the capacity model came about, and where its registered version is."""

from typing import Final, Literal

from pydantic import Field

from models.schema import Format, NonNegative, PositiveInt, Ratio

SELECTION_FILE: Final = "selection.json"
SELECTION_VERSION: Final = 2
"""Version 1 held the coefficients of a single regression; registered versions of it are not planned with any more."""


class SelectionRecord(Format):
    """One selection and the model version that it made. Errors are RMSE in records/s."""

    schema_version: Literal[2] = SELECTION_VERSION
    job: str
    run: str = Field(description="Pipeline run that selected it.")
    testbed: str = Field(description="Where its observations were made.")
    model: str = Field(description="'stacked', or the law that the request named.")
    forced: bool = Field(description="Whether the request named the law.")
    weights: dict[str, Ratio] = Field(description="How much each candidate counts in the model.")
    loocv: dict[str, NonNegative] = Field(description="Leave-one-out error of each candidate.")
    loocv_rmse: NonNegative = Field(description="Leave-one-out error of the model.")
    reason: str
    observations: PositiveInt = Field(description="Number of observations it was fitted on.")
    exploration_digest: str = Field(description="Of the exploration they are in.")
    experiment: str
    mlflow_run_id: str
    model_uri: str = Field(description="Registered model and version, for example 'models:/nexmark-q5/3'.")
    model_version: PositiveInt
    model_digest: str = Field(description="SHA-256 of the file of its estimator.")
    capacity_digest: str = Field(description="SHA-256 of the file of its capacity model.")
