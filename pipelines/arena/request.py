"""The parameters of an evaluation, declared once: for the command line, the DAG and the evaluation itself."""

from typing import Annotated, Final, Literal, Self

from pydantic import Field, JsonValue, model_validator

from models.schema import SCHEMA_VERSION, Format, PositiveInt

SEED: Final = 1066
"""Seed of the published workloads."""
LATENCY_BOUND_S: Final = 60.0
"""Default bound; a record that arrives during a restart waits for about half of that."""
AS_EVALUATED: Final[dict[str, dict[str, JsonValue]]] = {
    "ds2": {"over_provisioning_factor": 0.2, "warm_up_intervals": 10},
    "justin": {"over_provisioning_factor": 0.2},
}
"""Settings that differ from a policy's own defaults, so that it is compared as in section 6.1 of the evaluation of
autoscalers: DS2, and what builds on it, adds 20 % of tasks for spikes and for the lag of rescales; DS2 waits 5 minutes (10
intervals of 30 s) after each, as Dhalion and both HPA policies do by default."""


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
        description="Peak rate, records/s: nominal for patterns, the highest of a file. If absent, patterns reach a share "
        "of what the cluster sustains, and files keep their rates.",
    )
    placement: Literal["evenly", "caps"] | None = Field(
        None, description="Placement of tasks; if absent, evenly, but CAPS for 'sluice' on workers with several slots."
    )
    managed_memory_mb: Annotated[float, Field(gt=0, le=1e9)] | None = Field(
        None,
        description="Managed memory of one task at the start, MiB; the even share of its TaskManager's if absent.",
        json_schema_extra={"option": "managed-memory"},
    )
    latency_bound_s: float = Field(
        LATENCY_BOUND_S,
        gt=0,
        le=86_400,
        description="Largest acceptable p95 latency, seconds.",
        json_schema_extra={"option": "latency-bound"},
    )

    @model_validator(mode="after")
    def _check(self) -> Self:
        for what in ("jobs", "workloads", "policies"):
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

    def settings_of(self, policy: str) -> dict[str, JsonValue]:
        """Settings of a policy in the replays, and in use if it is chosen, as far as they differ from its defaults."""
        return AS_EVALUATED.get(policy, {}) | self.settings.get(policy, {})
