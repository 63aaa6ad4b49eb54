"""The parameters of a threshold table, declared once: for the command line, the DAG and the table itself."""

import math
from typing import Annotated, Final, Literal

from pydantic import Field, model_validator

from models.schema import SCHEMA_VERSION, Format

MOST_RATES: Final = 2000


class ThresholdRequest(Format):
    """The scalings of a table: rates lowest x R, ..., R, ..., highest x R in steps of step x R."""

    schema_version: Literal[1] = SCHEMA_VERSION
    rate: Annotated[float, Field(gt=0, le=1e12)] | None = Field(
        None, description="Central rate R, records/s; the target rate of the job's plan if absent."
    )
    lowest: float = Field(0.5, gt=0, le=1, description="Lowest rate, as a factor on R.")
    highest: float = Field(2.0, ge=1, le=1e3, description="Highest rate, as a factor on R.")
    step: float = Field(0.1, gt=0, le=1e3, description="Step between rates, as a factor on R.")
    time_limit_s: float = Field(
        60.0,
        gt=0,
        le=86_400,
        description="Time limit of each tuning, seconds.",
        json_schema_extra={"option": "time-limit"},
    )
    seed: int = Field(0, ge=0, description="Seed for ties in the search.")

    @model_validator(mode="after")
    def _check(self) -> "ThresholdRequest":
        if (self.highest - self.lowest) / self.step > MOST_RATES:
            raise ValueError(f"a table has at most {MOST_RATES} rates; take a larger step than {self.step}")
        return self

    def factors(self) -> list[float]:
        """Factors on R, those nearest to 1 first, since they are the most likely."""
        first = math.ceil((self.lowest - 1) / self.step - 1e-9)
        last = math.floor((self.highest - 1) / self.step + 1e-9)
        return [round(1 + k * self.step, 9) for k in sorted(range(first, last + 1), key=abs)]
