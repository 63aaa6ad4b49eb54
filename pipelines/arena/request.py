"""The parameters of an evaluation, declared once: for the command line, the DAG and the evaluation itself."""

import math
from typing import Annotated, Final, Literal, Self

from pydantic import Field, JsonValue, model_validator

from models.scaling.policies import POLICIES
from models.schema import SCHEMA_VERSION, Format, PositiveInt

LISTS: Final = ("jobs", "workloads", "policies", "rescale_modes", "starts")
"""Fields that name several of a kind."""
SEED: Final = 1066
"""Seed of the published workloads."""
ATTAINMENT: Final = 0.99
"""Share of the records that should be within the objective by default."""
Objective = Literal[1, 10, 60]
"""Waiting time within which a record is not late, seconds; a replay reports the share of records within each of these."""
RescaleMode = Literal["in-place", "savepoint", "redeploy"]
"""in-place: the same JVMs, from the last checkpoint. savepoint: stop with a savepoint and start new TaskManagers from it.
redeploy: the same, and all pods are deleted and created again, the JobManager's first."""
OBJECTIVE_S: Final[dict[RescaleMode, Objective]] = {"in-place": 10, "savepoint": 60, "redeploy": 60}
"""Default objective: a rescale in place can stay within it, and one by savepoint, which takes 30 s and more, within the
longer one only. One by redeployment takes minutes, so each makes records late."""
DEFAULT_MODE: Final[RescaleMode] = "in-place"
StartSize = Literal["well", "under", "over"]
"""What the first rate needs; half of it; twice of it, or all slots."""
LEAST_BETWEEN_S: Final[dict[RescaleMode, float]] = {"in-place": 60.0, "savepoint": 180.0, "redeploy": 300.0}
"""Shortest time between two rescales by default, seconds. Flink's meters are means over 60 s, so a decision sooner than that
would rest on metrics of few seconds. After a savepoint, some 40 s of downtime and 60 s of slow code (three times
`Physics.cold_decay_s`) come before those 60 s; after a redeployment, 180 s of slow code and a backlog of minutes."""
BURN_IN_MINUTES: Final = 30.0
"""Time at the beginning of a replay that is not scored, so that how a policy finds its first deployment is not either."""


_DS2_INTERVAL_S: Final = 30.0


_EXPECTED_RESTART_S: Final[dict[RescaleMode, float]] = {"in-place": 1.0, "savepoint": 60.0, "redeploy": 180.0}
"""What somebody who has seen some rescales of the mode would expect."""


def recommended_settings(policy: str, mode: RescaleMode) -> dict[str, JsonValue]:
    """Settings of a policy in the arena, as far as they differ from its defaults.

    | policy | settings | source |
    |---|---|---|
    | `ds2`, `justin` | 20 % more tasks | evaluation of autoscalers, section 6.1 |
    | `flink` | those below | example in the documentation of the operator's autoscaler |
    | others | their defaults | |

    The arena changes two things. How long a policy waits after a rescale (`ds2`: `warm_up_intervals`, `justin`:
    `stabilization_s`, `flink`: `stabilization.interval`, others: `cooldown_s`) is the shortest time between two rescales,
    which is the same for all. And the downtime that `flink` expects is that of the mode; the example has 2 min.
    """
    least_between_s = LEAST_BETWEEN_S[mode]
    differing: dict[str, dict[str, JsonValue]] = {
        "ds2": {"over_provisioning_factor": 0.2, "warm_up_intervals": math.ceil(least_between_s / _DS2_INTERVAL_S)},
        "justin": {"over_provisioning_factor": 0.2, "stabilization_s": least_between_s},
        "flink": {
            "stabilization.interval": least_between_s,
            "metrics.window": "5 min",
            "utilization.target": 0.6,
            "target.utilization.boundary": 0.2,
            "restart.time": _EXPECTED_RESTART_S[mode],
            "catch-up.duration": "5 min",
        },
        "static": {},
        **{name: {"cooldown_s": least_between_s} for name in ("dhalion", "hpa-cpu", "hpa-varga")},
        "sluice": {
            "objective_s": OBJECTIVE_S[mode],
            "least_between_s": least_between_s,
            "restart_s": _EXPECTED_RESTART_S[mode],
        },
    }
    return differing.get(policy, {})


class EvaluationRequest(Format):
    """The replays to run: every job under every workload and policy, with every seed."""

    schema_version: Literal[1] = SCHEMA_VERSION
    jobs: tuple[str, ...] = Field(min_length=1, description="Names in the catalogue, or paths of job files.")
    workloads: tuple[str, ...] = Field(
        min_length=1, description="Patterns, or paths of CSV files of rates, each with :COLUMN where that is ambiguous."
    )
    policies: tuple[str, ...] = Field(min_length=1, description="Names of scaling policies.")
    settings: dict[str, dict[str, JsonValue]] = Field(
        default_factory=dict, description="Settings by policy, where they differ from those of the evaluation."
    )
    cluster: str = Field("arena", min_length=1, description="Cluster of the catalogue, or path of a cluster file.")
    seed: int = Field(
        SEED, ge=0, description="First seed of workload and testbed; the default gives the published workloads."
    )
    seeds: PositiveInt = Field(1, description="Number of consecutive seeds.")
    minutes: PositiveInt | None = Field(
        None, description="Length of the workloads, minutes; if absent, the whole of a file, and 140 for a pattern."
    )
    peak_rate: Annotated[float, Field(gt=0, le=1e12)] | None = Field(
        None,
        description="Peak rate, records/s: nominal for patterns, the highest of a file. If absent, patterns reach half "
        "of what the simulated cluster sustains, and files keep their rates.",
    )
    placement: Literal["evenly", "caps"] | None = Field(
        None, description="Placement of tasks; if absent, evenly, but CAPS for 'sluice' on workers with several slots."
    )
    managed_memory_mb: Annotated[float, Field(gt=0, le=1e9)] | None = Field(
        None,
        description="Managed memory of one task at the start, MiB; the even share of its TaskManager's if absent.",
        json_schema_extra={"option": "managed-memory"},
    )
    rescale_modes: tuple[RescaleMode, ...] = Field(
        (DEFAULT_MODE,),
        min_length=1,
        description="How rescales are made: in-place, savepoint, redeploy, or several of them.",
    )
    starts: tuple[StartSize, ...] = Field(
        ("well",),
        min_length=1,
        description="Initial deployments: well, under (half) or over (twice) provisioned; one replay with each.",
    )
    burn_in_minutes: Annotated[float, Field(ge=0, le=1e6)] = Field(
        BURN_IN_MINUTES, description="Minutes at the beginning of each replay that no metric counts."
    )
    sweep: bool = Field(
        False, description="Replay each policy at each value of its target knob, so that whole frontiers are compared."
    )
    objective_s: Objective | None = Field(
        None,
        description="Waiting time beyond which a record is late, seconds; if absent, 10 in place and 60 in the other modes.",
    )
    attainment: float = Field(
        ATTAINMENT,
        gt=0,
        lt=1,
        description="Share of the records that should be within the objective, 0-1.",
    )

    @model_validator(mode="after")
    def _check(self) -> Self:
        for what in LISTS:
            names = getattr(self, what)
            twice = [name for name in names if names.count(name) > 1]
            if twice:
                raise ValueError(
                    f"each of {what} must be named once, but {twice[0]!r} appears {names.count(twice[0])} times"
                )
        strangers = sorted(self.settings.keys() - set(self.policies))
        if strangers:
            raise ValueError(f"there are settings for {strangers[0]!r}, which is not among the policies evaluated")
        return self

    def settings_of(self, policy: str, mode: RescaleMode | None = None) -> dict[str, JsonValue]:
        """Settings of a policy in the replays, and in use if it is chosen, as far as they differ from its defaults.

        Args:
            mode: how rescales are made; the first of the request by default.
        """
        return recommended_settings(policy, mode or self.rescale_modes[0]) | self.settings.get(policy, {})

    def swept_settings(self, policy: str, mode: RescaleMode) -> list[dict[str, JsonValue]]:
        """Those of `settings_of`, with each value of the policy's knob; once as they are without a sweep.

        The value that they have without a sweep is among the values.
        """
        own, kind = self.settings_of(policy, mode), POLICIES[policy]
        if not self.sweep:
            return [own]
        values = sorted({*kind.knob.values, kind.knob_value(own)})
        return [kind.with_knob(own, value) for value in values]

    def objective_of(self, mode: RescaleMode) -> Objective:
        """Waiting time beyond which a record is late, seconds."""
        return self.objective_s or OBJECTIVE_S[mode]
