"""The request and the result of a calibration."""

from enum import StrEnum
from typing import Literal

from pydantic import Field

from models.capacity.mst import MstSettings, Trial
from models.cluster import Cluster
from models.job import Job
from models.schema import SCHEMA_VERSION, Format, NonNegative, Positive, PositiveInt
from pipelines.measuring.estimate import SHORT
from testbeds.simulator.settings import Physics


class CalibrationRequest(Format):
    """The request of a calibration; repeating it resumes the calibration after a stop."""

    schema_version: Literal[1] = SCHEMA_VERSION
    memory_mb: Positive = Field(1024.0, description="Memory of one TaskManager, MiB.")
    most_tasks: PositiveInt = Field(4, ge=2, description="Most tasks of an operator other than a source.")
    configurations: int = Field(4, ge=2, le=8, description="Configurations to measure.")
    held_out: PositiveInt = Field(
        2, description="Number of the largest configurations that are used only to judge the calibration."
    )
    source_tasks: PositiveInt = Field(2, description="Tasks of each source in the first configuration.")
    mst: MstSettings = Field(SHORT, description="Settings of the MST search.")
    rehearsal_s: NonNegative = Field(
        240.0,
        description="Longest warm-up under overload before the first measurement, seconds; it ends when the throughput "
        "grows no more. 0: none.",
    )
    seed: int = Field(0, ge=0, description="Seed of the testbed.")


class MeasuredConfiguration(Format):
    """One configuration and its MST; its samples are in the workspace."""

    run: str = Field(description="Run whose samples show it.")
    parallelism: dict[str, PositiveInt] = Field(description="Tasks of each operator, sources included.")
    memory_mb: Positive = Field(description="Memory of one TaskManager, MiB.")
    mst: Positive = Field(description="Maximal sustainable throughput, records/s at the sources.")
    trials: tuple[Trial, ...] = Field(description="Rates tried in its search.")
    source_rate_per_task: dict[str, Positive] = Field(description="True rate of one task of each source, records/s.")
    measured_s: NonNegative = Field(description="Time on the testbed, seconds.")


class Role(StrEnum):
    CALIBRATION = "calibration"
    HELD_OUT = "held out"


class CalibratedMst(Format):
    """A measured configuration, and the simulator's predictions before and after the calibration."""

    role: Role = Field(description="`calibration` if it was used in the fit, else `held out`.")
    parallelism: dict[str, PositiveInt] = Field(description="Tasks of each operator, sources included.")
    memory_mb: Positive = Field(description="Memory of one TaskManager, MiB.")
    measured: Positive = Field(description="MST on the testbed, records/s.")
    uncalibrated: NonNegative = Field(description="MST on the simulator by the job's own figures, records/s.")
    calibrated: NonNegative = Field(description="MST on the simulator after calibration, records/s.")
    uncalibrated_error: float = Field(description="Relative: 0.1 where it is a tenth too high.")
    calibrated_error: float = Field(description="Relative: 0.1 where it is a tenth too high.")


class Calibration(Format):
    """The simulator's inputs to predict a job on the measured cluster, and its accuracy."""

    schema_version: Literal[1] = Field(SCHEMA_VERSION, description="Version of this format.")
    testbed: str = Field(description="Where it was measured.")
    job: Job = Field(
        description="The job with measured figures; `figures_from` of each operator says where they come from."
    )
    cluster: Cluster = Field(description="The cluster with the cores that tasks get from each worker.")
    machine: Physics = Field(description="Constants of the simulator that differ on this machine.")
    common_factor: Positive = Field(
        description="Factor on all unit costs that makes the simulator reproduce the MSTs of the calibration."
    )
    comparisons: tuple[CalibratedMst, ...] = Field(description="All configurations, smallest first.")
    uncalibrated_error: NonNegative = Field(
        description="Median absolute relative error, held-out configurations, by the job's own figures."
    )
    calibrated_error: NonNegative = Field(
        description="Median absolute relative error, held-out configurations, after calibration."
    )
    measured_s: NonNegative = Field(description="Time on the testbed, seconds.")
