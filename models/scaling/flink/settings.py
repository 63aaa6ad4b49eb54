"""The options of the Flink Kubernetes operator's autoscaler, by their public names and with their defaults.

Names are without the prefix `job.autoscaler.`, which may be given too; so may the two names that the operator has
renamed since. Options without a counterpart here are left out: garbage collection, quotas of the cluster, excluded
periods, event and client intervals.
"""

from collections.abc import Mapping
from enum import Enum
from typing import Any, Final, Literal, Self

from pydantic import Field, model_validator

from models.metrics import SAMPLE_INTERVAL_S
from models.scaling.flink.quantities import Bytes, Seconds
from models.schema import Format, NonNegative, Positive, PositiveInt, Ratio

_PREFIX: Final = "job.autoscaler."
_RENAMED: Final = {"target.utilization": "utilization.target", "scale-up.grace-period": "scale-down.interval"}


class AlignmentMode(Enum):
    """`scaling.parallelism-alignment.mode`. No StrEnum: its members would equal those of the same name below."""

    BALANCED = "BALANCED"
    EVENLY_SPREAD = "EVENLY_SPREAD"
    OFF = "OFF"


class FormerAlignment(Enum):
    """How release 1.6 aligns, for which it has no option."""

    UP_TO_HALF = "UP_TO_HALF"


class AdjustMode(Enum):
    """`scaling.key-group.partitions.adjust.mode`, which the operator keeps for those who set it."""

    EVENLY_SPREAD = "EVENLY_SPREAD"
    MAXIMIZE_UTILISATION = "MAXIMIZE_UTILISATION"


def _seconds(default: float, name: str, description: str) -> Any:
    return Field(default, alias=name, description=f"{description}, seconds or a text such as '5 min'.")


class FlinkSettings(Format):
    """Options of the autoscaler, and of the operator and Flink where they are not about scaling itself."""

    reconcile_interval_s: Seconds = Field(
        60.0,
        alias="kubernetes.operator.reconcile.interval",
        gt=0,
        multiple_of=SAMPLE_INTERVAL_S,
        description="How often metrics are collected and a decision may be made, seconds.",
    )
    metrics_window_s: Seconds = Field(
        900.0, alias="metrics.window", gt=0, description="Window that metrics are averaged over, seconds or '15 min'."
    )
    stabilization_interval_s: Seconds = _seconds(
        300.0, "stabilization.interval", "Time after a start whose metrics are ignored"
    )
    utilization_target: Positive = Field(0.7, alias="utilization.target", le=1, description="Target busy share.")
    utilization_max: Positive | None = Field(
        None, alias="utilization.max", description="Upper end of the band; target + boundary if it is not given."
    )
    utilization_min: NonNegative | None = Field(
        None, alias="utilization.min", description="Lower end of the band; target - boundary if it is not given."
    )
    utilization_boundary: NonNegative = Field(
        0.3, alias="target.utilization.boundary", description="Half the width of the band around the target."
    )
    busy_time_aggregator: Literal["MAX", "AVG"] = Field(
        "MAX",
        alias="metrics.busy-time.aggregator",
        description="How the busy share of an operator is aggregated from its tasks.",
    )
    vertex_min_parallelism: PositiveInt = Field(1, alias="vertex.min-parallelism", description="Fewest tasks.")
    vertex_max_parallelism: PositiveInt = Field(200, alias="vertex.max-parallelism", description="Most tasks.")
    vertex_exclude_ids: frozenset[str] = Field(
        frozenset(),
        alias="vertex.exclude.ids",
        description="Operators that are not scaled: names, or one text with ';'.",
    )
    max_scale_down_factor: Ratio = Field(
        0.6, alias="scale-down.max-factor", description="Largest share of the tasks that one scale-down takes away."
    )
    max_scale_up_factor: NonNegative = Field(
        100_000.0, alias="scale-up.max-factor", description="Largest multiple of the tasks that one scale-up adds."
    )
    scale_down_interval_s: Seconds = _seconds(
        3600.0, "scale-down.interval", "How long fewer tasks must be wanted before a scale-down; 0 scales down at once"
    )
    catch_up_duration_s: Seconds = _seconds(
        1800.0, "catch-up.duration", "Time in which to catch up with a backlog; 0 ignores backlogs"
    )
    restart_time_s: Seconds = _seconds(300.0, "restart.time", "Expected downtime of a rescale")
    restart_time_tracked: bool = Field(
        False, alias="restart.time-tracking.enabled", description="Expect the longest observed downtime instead."
    )
    restart_time_limit_s: Seconds = _seconds(
        900.0, "restart.time-tracking.limit", "Longest downtime that is expected when it is tracked"
    )
    backlog_lag_s: Seconds = _seconds(
        300.0,
        "backlog-processing.lag-threshold",
        "Lag over the rate read, from which the job counts as processing a backlog",
    )
    observed_rate_lag_s: Seconds = _seconds(
        30.0,
        "observed-true-processing-rate.lag-threshold",
        "Lag over the rate read, from which a source's true rate is observed",
    )
    observed_rate_switch: NonNegative = Field(
        0.15,
        alias="observed-true-processing-rate.switch-threshold",
        description="Relative excess of the true rate from busy time over the observed one, from which the latter is used.",
    )
    observed_rate_min_observations: PositiveInt = Field(
        2,
        alias="observed-true-processing-rate.min-observations",
        description="Fewest observations for an observed true rate.",
    )
    blocks_ineffective: bool = Field(
        False,
        alias="scaling.effectiveness.detection.enabled",
        description="Whether to make no further scale-up after an ineffective one.",
    )
    effectiveness_threshold: NonNegative = Field(
        0.1,
        alias="scaling.effectiveness.threshold",
        description="Share of the expected increase of the true rate below which a scale-up was ineffective.",
    )
    observes_scalability: bool = Field(
        False,
        alias="observed-scalability.enabled",
        description="Assume the scalability observed in earlier scalings instead of linear scaling.",
    )
    scalability_min_observations: PositiveInt = Field(
        3, alias="observed-scalability.min-observations", description="Fewest earlier scalings for that."
    )
    scalability_min: Positive = Field(
        0.5, alias="observed-scalability.coefficient-min", le=1, description="Lowest scalability that is assumed."
    )
    history_max_count: PositiveInt = Field(
        3, alias="history.max.count", description="Scalings of an operator, and restarts, that are remembered."
    )
    history_max_age_s: Seconds = _seconds(86400.0, "history.max.age", "How long they are remembered")
    operator_release: Literal["1.6", "current"] = Field(
        "current",
        alias="operator.release",
        description="Release whose rules hold. 1.6: a scale-down is made at once, but not within `scale-down.interval` (there "
        "`scale-up.grace-period`) after a scale-up, and tasks are aligned to divisors of up to half of the key groups.",
    )
    alignment_mode: AlignmentMode | None = Field(
        None,
        alias="scaling.parallelism-alignment.mode",
        description="How tasks are aligned with key groups and partitions; BALANCED if neither mode is given.",
    )
    adjust_mode: AdjustMode | None = Field(
        None, alias="scaling.key-group.partitions.adjust.mode", description="The alignment modes of earlier releases."
    )
    memory_tuning_enabled: bool = Field(
        False, alias="memory.tuning.enabled", description="Adapt the memory of TaskManagers to its use."
    )
    memory_overhead: NonNegative = Field(
        0.2, alias="memory.tuning.overhead", description="Share added to the heap and the metaspace that are used."
    )
    maximizes_managed_memory: bool = Field(
        False,
        alias="memory.tuning.maximize-managed-memory",
        description="Add the memory saved to managed memory, if managed memory is used.",
    )
    compensates_scale_down: bool = Field(
        True,
        alias="memory.tuning.scale-down-compensation.enabled",
        description="Keep the total heap when the number of TaskManagers falls.",
    )
    process_memory: Bytes = Field(
        1728 << 20,
        alias="taskmanager.memory.process.size",
        description="Memory of one TaskManager before tuning, bytes or a text such as '30 gb'.",
    )
    task_slots: PositiveInt = Field(1, alias="taskmanager.numberOfTaskSlots", description="Slots of one TaskManager.")

    @model_validator(mode="before")
    @classmethod
    def _public_names(cls, given: Any) -> Any:
        """The current name of every option, without the prefix."""
        if not isinstance(given, Mapping):
            return given
        renamed: dict[str, Any] = {}
        for name, value in given.items():
            bare = str(name).removeprefix(_PREFIX)
            today = _RENAMED.get(bare, bare)
            if today in renamed:
                raise ValueError(f"{today} is given twice, once by another name; give it once")
            renamed[today] = value
        excluded = renamed.get("vertex.exclude.ids")
        if isinstance(excluded, str):
            renamed["vertex.exclude.ids"] = [name.strip() for name in excluded.split(";") if name.strip()]
        return renamed

    @model_validator(mode="after")
    def _limits(self) -> Self:
        if self.vertex_min_parallelism > self.vertex_max_parallelism:
            raise ValueError(
                "vertex.min-parallelism <= vertex.max-parallelism must hold, but got "
                f"{self.vertex_min_parallelism} and {self.vertex_max_parallelism}"
            )
        return self

    @property
    def is_release_1_6(self) -> bool:
        """Whether the rules of release 1.6 hold."""
        return self.operator_release == "1.6"

    @property
    def alignment(self) -> AlignmentMode | AdjustMode | FormerAlignment:
        """The effective mode."""
        if self.is_release_1_6:
            return FormerAlignment.UP_TO_HALF
        return self.alignment_mode or self.adjust_mode or AlignmentMode.BALANCED

    def band(self) -> tuple[float, float]:
        """Lowest and highest utilisation without a change."""
        low = (
            self.utilization_target - self.utilization_boundary
            if self.utilization_min is None
            else self.utilization_min
        )
        high = (
            self.utilization_target + self.utilization_boundary
            if self.utilization_max is None
            else self.utilization_max
        )
        return low, high
