"""How a job is operated: when it is planned or measured again, and who may change the running job.

None of this is a property of the job itself, so measurements, models and plans do not depend on it.
"""

from typing import Annotated, Literal

from pydantic import Field, model_validator

from flink_client.address import Address
from models.calendar.rules import Calendar
from models.scaling.rate_band import BandRules
from models.schema import Format, NonNegative, Positive, PositiveInt
from pipelines.inputs.operations.applying import Applying
from pipelines.inputs.operations.autopiloting import Autopiloting

MOST_READINGS = 1000
"""Of one window."""
VariableName = Annotated[str, Field(pattern=r"^[A-Z][A-Z0-9_]*$", max_length=120)]


class PrometheusRates(Format):
    """The source rate from Prometheus."""

    url: Address = Field(description="Address of Prometheus, for example http://prometheus:9090, or connection:NAME.")
    query: str = Field(
        min_length=1,
        max_length=4000,
        description="PromQL whose result is the rate of all sources, records/s; several series are summed.",
    )
    token_variable: VariableName | None = Field(
        None, description="Environment variable that holds a bearer token, if one is required."
    )


class FlinkRates(Format):
    """The source rate as Flink counts it: `numRecordsOutPerSecond` of all source tasks, and the growth of `pendingRecords`."""

    url: Address = Field(
        description="REST address of the cluster, for example http://jobmanager:8081, or connection:NAME."
    )
    job: str | None = Field(
        None, min_length=1, max_length=250, description="Flink's name or id of the job; default: the name of this job."
    )


class RateOrigin(Format):
    """Where the source rate is read: from one of the two."""

    prometheus: PrometheusRates | None = Field(None, description="From Prometheus.")
    flink: FlinkRates | None = Field(None, description="From Flink's REST interface.")
    timeout_s: Positive = Field(10.0, le=600, description="Time limit of an answer, seconds.")

    @model_validator(mode="after")
    def _check(self) -> "RateOrigin":
        if (self.prometheus is None) == (self.flink is None):
            given = "neither is" if self.prometheus is None else "both are"
            raise ValueError(f"exactly one of 'prometheus' and 'flink' must be given, but {given}")
        return self


class Replanning(BandRules):
    """When a change of the source rate triggers a replan."""

    rates: RateOrigin = Field(description="Where the source rate is read.")


class Observing(Format):
    """How the running job is observed while Airflow runs."""

    flink: Address = Field(description="REST address of the cluster that runs the job, or connection:NAME.")
    job: str | None = Field(
        None, min_length=1, max_length=250, description="Flink's name or id of the job; default: the name of this job."
    )
    every_s: float = Field(60.0, ge=5, le=3600, description="Time between two readings of its counters, seconds.")
    window_s: float = Field(
        3600.0, le=86400, description="Time that one file of samples covers, seconds; at least two readings."
    )
    kafka: str | None = Field(
        None,
        min_length=1,
        description="HOST:PORT of brokers of the topics that it reads, or connection:NAME, to count what waits there; default: "
        "as its sources report it.",
    )
    token_variable: VariableName | None = Field(
        None, description="Environment variable of the triggerer that holds a bearer token, if one is required."
    )
    timeout_s: Positive = Field(30.0, le=600, description="Time limit of an answer, seconds.")

    @model_validator(mode="after")
    def _check(self) -> "Observing":
        if self.window_s < 2 * self.every_s:
            raise ValueError(
                f"'window_s' must be at least twice 'every_s', but got {self.window_s:g} and {self.every_s:g}"
            )
        if self.window_s > MOST_READINGS * self.every_s:
            raise ValueError(
                f"a window has at most {MOST_READINGS} readings, but 'window_s' is {self.window_s:g} and 'every_s' is "
                f"{self.every_s:g}"
            )
        return self


class Reviewing(Format):
    """Who decides whether a new capacity model, the challenger, replaces the champion."""

    mode: Literal["rule", "person-beyond-limits", "person"] = Field(
        "rule",
        description="'rule': approved within the limits, rejected beyond them; 'person-beyond-limits': approved within "
        "them, a person is asked beyond; 'person': a person is always asked.",
    )
    max_error_increase: NonNegative = Field(
        0.0,
        description="Limit: largest excess of the challenger's error on the held-out points, as a share of the champion's.",
    )
    max_slot_change: Positive | None = Field(
        None,
        description="Limit: largest difference of the task slots at the rate last planned for, as a share of the champion's. "
        "None: no limit.",
    )
    allow_unreviewed: bool = Field(
        False, description="Plan with a model whose review is pending, instead of waiting for the review."
    )


class Drifting(Format):
    """When production differs from the measurements, so that the job is measured again."""

    tolerance: Positive = Field(
        0.1, lt=1, description="Difference from a measured value that is never drift, as a share of it."
    )
    confidence: Positive = Field(
        0.99, lt=1, description="Probability that no comparison reports drift if nothing has changed."
    )
    windows: PositiveInt = Field(12, le=1000, description="Number of the newest files of production samples to read.")
    cool_down_s: NonNegative = Field(86400.0, description="Least time between two requests to measure again, seconds.")


class Operations(Format):
    """How a job is operated."""

    replan: Replanning | None = Field(None, description="Follow the source rate, and replan when it changes.")
    calendar: Calendar | None = Field(None, description="Plan ahead, by the season of the rate and by stated events.")
    observe: Observing | None = Field(None, description="Observe the running job, and store samples for drift.")
    autopilot: Autopiloting | None = Field(None, description="Let a scaling policy act on the running job.")
    apply: Applying = Field(default_factory=Applying, description="Whether new plans are applied to Flink.")
    review: Reviewing = Field(default_factory=Reviewing, description="Who approves new capacity models.")
    drift: Drifting = Field(default_factory=Drifting, description="When drift of production triggers new measurements.")
