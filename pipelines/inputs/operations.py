"""How a job is operated: what makes it be planned or measured again, and who may change what runs.

None of this is a property of the job itself, so nothing that was measured, fitted or planned depends on it.
"""

from typing import Annotated, Literal

from pydantic import Field, model_validator

from flink_client.address import Url
from models.scaling.rate_band import BandRules
from models.schema import Format, Name, NonNegative, Positive, PositiveInt

VariableName = Annotated[str, Field(pattern=r"^[A-Z][A-Z0-9_]*$", max_length=120)]


class PrometheusRates(Format):
    """The source rate as Prometheus knows it."""

    url: Url = Field(description="Address of Prometheus, for example http://prometheus:9090.")
    query: str = Field(
        min_length=1,
        max_length=4000,
        description="PromQL whose result is the rate of all sources, records/s; several series are summed.",
    )
    token_variable: VariableName | None = Field(
        None, description="Environment variable that holds a bearer token, where one is asked for."
    )


class FlinkRates(Format):
    """The source rate as Flink counts it: `numRecordsOutPerSecond` of all source tasks, summed."""

    url: Url = Field(description="REST address of the cluster, for example http://jobmanager:8081.")
    job: str | None = Field(
        None, min_length=1, max_length=250, description="Flink's name or id of the job; else the name of this job."
    )


class RateOrigin(Format):
    """Where the source rate is read: from one of the two."""

    prometheus: PrometheusRates | None = Field(None, description="From Prometheus.")
    flink: FlinkRates | None = Field(None, description="From Flink's REST interface.")
    timeout_s: Positive = Field(10.0, le=600, description="For an answer, seconds.")

    @model_validator(mode="after")
    def _check(self) -> "RateOrigin":
        if (self.prometheus is None) == (self.flink is None):
            given = "neither is" if self.prometheus is None else "both are"
            raise ValueError(f"exactly one of 'prometheus' and 'flink' must be given, but {given}")
        return self


class Replanning(BandRules):
    """When a change of the source rate asks for another plan."""

    rates: RateOrigin = Field(description="Where the source rate is read.")


class Applying(Format):
    """Who may make a running Flink job what a new plan says."""

    mode: Literal["never", "approved", "alone"] = Field(
        "never", description="'approved': after a person has approved the steps; 'alone': without."
    )
    flink: Url | None = Field(None, description="REST address of the cluster; must be given unless mode is 'never'.")
    job: str | None = Field(
        None, min_length=1, max_length=250, description="Flink's name or id of the job; else the name of this job."
    )
    export: Literal["overrides", "requirements", "flinkdeployment"] | None = Field(
        None,
        description="Write these settings beside the plan, for whoever deploys the job, instead of changing it by REST.",
    )
    program: Name | None = Field(
        None,
        description="File beside this one that says what to restart, where the cluster's scheduler cannot change a running "
        "job.",
    )
    timeout_s: Positive = Field(120.0, le=3600, description="For the plan to run, before what ran is taken back.")
    observe_s: NonNegative = Field(60.0, le=3600, description="How long its effect is watched; 0: not at all.")
    approval_s: Positive = Field(86400.0, description="How long a person is waited for, seconds.")

    @model_validator(mode="after")
    def _check(self) -> "Applying":
        if self.mode != "never" and self.flink is None:
            raise ValueError(f"where mode is {self.mode!r}, 'flink' must name the cluster's REST address")
        return self


class Reviewing(Format):
    """Who decides whether plans are made with a new capacity model, the challenger, instead of the champion."""

    mode: Literal["rule", "person-beyond-limits", "person"] = Field(
        "rule",
        description="'rule': approved within the limits, rejected beyond them; 'person-beyond-limits': approved within "
        "them, a person is asked beyond; 'person': a person is always asked.",
    )
    max_error_increase: NonNegative = Field(
        0.0,
        description="Limit: share of the champion's error on the held-out points that the challenger's may be above it.",
    )
    max_slot_change: Positive | None = Field(
        None,
        description="Limit: share of the champion's task slots, at the rate last planned for, that the challenger's may "
        "differ by. None: any number.",
    )
    allow_unreviewed: bool = Field(
        False, description="Plan with a model that waits for a person, instead of waiting with it."
    )


class Drifting(Format):
    """When production differs from what was measured, so that the job has to be measured again."""

    tolerance: Positive = Field(
        0.1, lt=1, description="Share of a measured value by which production may always differ from it."
    )
    confidence: Positive = Field(
        0.99, lt=1, description="Probability of reporting none, of all comparisons together, where nothing has changed."
    )
    windows: PositiveInt = Field(12, le=1000, description="So many of the newest files of production samples are read.")
    cool_down_s: NonNegative = Field(
        86400.0, description="Seconds after a request to measure again in which there is no other."
    )


class Operations(Format):
    """How a job is operated, beside what it is."""

    replan: Replanning | None = Field(None, description="Follow the source rate, and plan again where it changes.")
    apply: Applying = Field(default_factory=Applying, description="Whether new plans are applied to Flink.")
    review: Reviewing = Field(default_factory=Reviewing, description="Who approves new capacity models.")
    drift: Drifting = Field(default_factory=Drifting, description="When production asks for new measurements.")
