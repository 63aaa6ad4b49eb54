"""The parameters of a plan, declared once.

Airflow's parameters and the options of the command line are generated from this schema. A field's `unit` and `option`
are in its JSON Schema; `option` is a shorter spelling that the command line accepts as well.
"""

from decimal import Decimal
from typing import Annotated, Final, Literal, Self

from pydantic import Field, model_validator

from models.errors import InvalidInput
from models.objectives.objectives import Objectives
from models.objectives.parsing import parse_objectives
from models.objectives.recovery import catch_up_factor
from models.schema import SCHEMA_VERSION, Format, Name

Rate = Annotated[
    float,
    Field(
        gt=0,
        le=1e12,
        allow_inf_nan=False,
        description="Target rate at the sources together, records/s.",
        json_schema_extra={"unit": "records/s"},
    ),
]
"""A target rate; finite, since JSON has no infinity."""

DEFAULT_PRECISION: Final = 0.25
DEFAULT_FLINK: Final = "1.20"
DEFAULT_BACKEND: Final = "rocksdb"


class PlanRequest(Format):
    """The parameters of a plan. The same request is the same run, and resumes it after a stop."""

    schema_version: Literal[1] = SCHEMA_VERSION
    job: str = Field(
        min_length=1,
        description="Job of the catalogue, or path of a job file or, on Flink, of a program or SQL file.",
    )
    rate: Rate
    cluster: str = Field(
        "production", min_length=1, description="Cluster of the catalogue, or path of a cluster file, to plan for."
    )
    testbed: Literal["simulator", "flink", "recorded", "running"] = Field(
        "simulator",
        description="Where the job is measured; 'running' stands in the requests of plans that were made from a running job.",
    )
    # Omitted if absent, so that runs of other requests keep their names.
    flink: str | None = Field(
        None,
        exclude_if=lambda named: named is None,
        description="Flink to measure on: the URL of its REST interface, connection:NAME, or a cluster (file) that has one. "
        "If absent, the cluster that is planned for where it has one, else a Flink that Sluice starts.",
        json_schema_extra={"metavar": "URL|CLUSTER"},
    )
    flink_version: Literal["1.20", "2.3"] = Field(
        DEFAULT_FLINK,
        exclude_if=lambda version: version == DEFAULT_FLINK,
        description="Version of the Flink that Sluice starts; a running one has its own.",
    )
    state_backend: Literal["rocksdb", "forst"] = Field(
        DEFAULT_BACKEND,
        exclude_if=lambda backend: backend == DEFAULT_BACKEND,
        description="Where jobs keep their state on the Flink that Sluice starts; 'forst' needs version 2.3. A running one has "
        "its own.",
    )
    feed: Literal["rated", "kafka"] = Field(
        "rated",
        exclude_if=lambda feed: feed == "rated",
        description="What feeds the sources of a program on Flink: 'rated', sources whose rate Sluice sets; 'kafka', the "
        "topics that its file names, for programs as they are in production.",
    )
    mst: Literal["auto", "injection", "drain"] = Field(
        "auto",
        exclude_if=lambda way: way == "auto",
        description="How the MST of a configuration is measured: 'injection' offers rate after rate, and sees which the job "
        "keeps up with; 'drain' offers more than it takes, which topics keep, and counts what it takes, in a third of the "
        "time; 'auto' is 'drain' with the feed 'kafka', else 'injection'.",
    )
    measurements: str | None = Field(
        None,
        description="Measurements file of the testbed 'recorded', CSV.",
        json_schema_extra={"metavar": "CSV"},
    )
    measurement_rows: Annotated[int, Field(ge=1, le=1_000_000)] | None = Field(
        None, description="Number of first rows of the measurements to use.", json_schema_extra={"option": "rows"}
    )
    model: Literal["auto", "linear", "log", "sqrt", "power", "even", "skewed"] = Field(
        "auto", description="Growth law of the capacity model; 'auto' weighs all of them by their errors."
    )
    # Omitted by default, so that runs of earlier requests keep their names.
    twin: Literal["auto", "none"] = Field(
        "auto",
        exclude_if=lambda wanted: wanted == "auto",
        description="Whether a simulation of the job as it was measured joins the growth laws; 'none' leaves it out.",
    )
    risk: Annotated[float, Field(gt=0, le=0.5)] | None = Field(
        None,
        description="Probability, by the capacity model, that the plan does not sustain the target rate. If neither it "
        "nor a headroom is given: 0.1, but a headroom of 1.1 with the models linear, log and sqrt.",
    )
    headroom: Annotated[float, Field(ge=1, le=1000)] | None = Field(
        None, description="Factor on the target rate that the expected MST must reach, in place of a risk."
    )
    # Omitted if absent, so that runs of earlier requests keep their names.
    objective: str | None = Field(
        None,
        min_length=1,
        max_length=400,
        exclude_if=lambda objective: objective is None,
        description="What the plan must achieve beside the rate, such as 'lag p99 < 30 s, recover 15 min outage in 20 min, at "
        "most 12 $/h': any of the three, separated by commas. Lag is predicted by the twin.",
        json_schema_extra={"metavar": "OBJECTIVES"},
    )
    # Omitted at their defaults, so that runs of earlier requests keep their names.
    exploration: Literal["auto", "target", "streambed"] = Field(
        "auto",
        exclude_if=lambda exploration: exploration == "auto",
        description="How the budgets to measure are chosen: 'target' narrows the interval of the task slots for the target "
        "rate, 'streambed' lowers the prediction error as the paper does; 'auto' is 'target', but 'streambed' with the models "
        "linear, log and sqrt.",
    )
    precision: Annotated[float, Field(gt=0, le=1)] = Field(
        DEFAULT_PRECISION,
        exclude_if=lambda precision: precision == DEFAULT_PRECISION,
        description="The exploration 'target' ends when half of the 95 % interval of the task slots is at most this share of "
        "their number.",
    )
    memory_mb: Annotated[float, Field(gt=0, le=1e9, allow_inf_nan=False)] | None = Field(
        None,
        description="TaskManager memory to plan with, MiB; the best measured size if absent.",
        json_schema_extra={"unit": "MiB", "option": "memory"},
    )
    max_task_slots: int = Field(
        48,
        ge=1,
        le=100_000,
        description="Most task slots that the exploration may use.",
        json_schema_extra={"unit": "task slots", "option": "max-slots"},
    )
    max_measurements: int = Field(20, ge=3, le=20, description="Most measurements after the four corners.")
    seed: int = Field(
        0, ge=0, le=2**32 - 1, description="Seed of exploration and testbed; the same seed repeats the same run."
    )
    run: Name | None = Field(
        None,
        description="Name of the run; made from the request if absent. Reuse a run's name with a new rate to plan from "
        "its measurements.",
    )

    @property
    def explores_for_target(self) -> bool:
        """Whether budgets are chosen for the target rate, and not as StreamBed does."""
        if self.exploration == "auto":
            from models.capacity.growth.regressions import REGRESSIONS  # NumPy, which reading a request does without.

            return self.model not in REGRESSIONS
        return self.exploration == "target"

    @property
    def drains(self) -> bool:
        """Whether a job is offered more than it takes, so that what it takes is its MST."""
        return self.mst == "drain" or (self.mst == "auto" and self.feed == "kafka")

    @property
    def wants_twin(self) -> bool:
        """Published measurements come without samples, and a model that was asked for is taken alone."""
        return self.twin == "auto" and self.testbed != "recorded" and self.model == "auto"

    @property
    def objectives(self) -> Objectives | None:
        """What `objective` states; None without one."""
        return None if self.objective is None else parse_objectives(self.objective)

    @property
    def catch_up(self) -> float:
        """Factor on the rate that must be sustained, so that the lag of an outage is read in time; 1 without an outage."""
        asked = self.objectives
        return 1.0 if asked is None or asked.recovery is None else catch_up_factor(asked.recovery)

    @property
    def most_usd_per_hour(self) -> Decimal | None:
        """Price limit of the plan; None without one."""
        return None if self.objectives is None else self.objectives.most_usd_per_hour

    def _check_objective(self) -> None:
        try:
            asked, _ = self.objectives, self.catch_up
        except InvalidInput as error:
            raise ValueError(f"'objective': {error}") from error
        if asked is not None and asked.lag is not None and not self.wants_twin:
            raise ValueError(
                "a lag objective is predicted by the job's twin, which there is with the testbeds 'simulator' and 'flink', "
                f"'twin' 'auto' and 'model' 'auto' only, but got {self.testbed!r}, {self.twin!r} and {self.model!r}; plan with "
                "these, or leave the lag objective out"
            )

    @model_validator(mode="after")
    def _check(self) -> Self:
        self._check_objective()
        if (self.testbed == "recorded") != (self.measurements is not None):
            raise ValueError("'measurements' must be given for the testbed 'recorded', and only there")
        if self.measurement_rows is not None and self.testbed != "recorded":
            raise ValueError("'measurement_rows' (--rows) must be given for the testbed 'recorded' only")
        if self.risk is not None and self.headroom is not None:
            raise ValueError("either 'risk' or 'headroom' may be given, not both")
        if self.flink is not None and self.testbed != "flink":
            raise ValueError("'flink' must be given for the testbed 'flink' only")
        if self.flink_version != DEFAULT_FLINK and (self.testbed != "flink" or self.flink is not None):
            raise ValueError(
                "'flink_version' must be given for a Flink that Sluice starts only: testbed 'flink' without 'flink'"
            )
        if self.state_backend != DEFAULT_BACKEND and (self.testbed != "flink" or self.flink is not None):
            raise ValueError(
                "'state_backend' must be given for a Flink that Sluice starts only: testbed 'flink' without 'flink'"
            )
        if self.state_backend == "forst" and self.flink_version == "1.20":
            raise ValueError("'state_backend' 'forst' needs Flink 2.3, but 'flink_version' is '1.20'; set it to '2.3'")
        if self.feed != "rated" and self.testbed != "flink":
            raise ValueError("'feed' must be given for the testbed 'flink' only")
        if self.mst == "drain" and self.feed != "kafka":
            raise ValueError(
                "'mst' may be 'drain' with the feed 'kafka' only, whose topics keep what a job does not take"
            )
        if self.job.endswith(".sql") and self.testbed != "flink":
            raise ValueError("a SQL file can be measured on the testbed 'flink' only, since Flink plans its operators")
        return self
