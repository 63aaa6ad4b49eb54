"""Who acts: policies with their settings, each as its own documentation recommends."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from pydantic import JsonValue

from benchmarks.autopilot.acting import FACTOR
from benchmarks.autopilot.acting.jobs import CHECKPOINT_REAL_S
from benchmarks.autopilot.acting.recording import LOOK_S, OFFSETS_EVERY
from benchmarks.autopilot.acting.scaled import ScaledTime
from models.scaling.policies import make_policy
from models.scaling.policy import Policy

OBJECTIVE_S: Final = 60.0
"""Longest lag-time: until a record is committed, which the recording sees."""
IN_LOG_S: Final = OBJECTIVE_S - FACTOR * (CHECKPOINT_REAL_S + LOOK_S * OFFSETS_EVERY)
"""What it leaves for the log: less the time to the next checkpoint, and to the next look at what was committed."""
LEAST_BETWEEN_S: Final = 60.0
"""Shortest time between two rescales, for all."""
INTERVAL_S: Final = 60.0
"""Between two decisions of those that can be set: 5 s of real time, in which Flink reports several times."""
OFTEN_S: Final = 25.0
"""Between two decisions of one that decides as often as Flink's figures change: 2 s of real time, in which they do twice."""
RESTART_S: Final = 12.0
"""What somebody expects who has seen a rescale in place of such a job: 1 s of real time."""
BURN_IN_S: Final = 1200.0

_DOCUMENTED: Final[Mapping[str, JsonValue]] = MappingProxyType(
    {
        "kubernetes.operator.reconcile.interval": INTERVAL_S,
        "stabilization.interval": LEAST_BETWEEN_S,
        "restart.time": RESTART_S,
        "metrics.window": 300.0,
        "utilization.target": 0.6,
        "target.utilization.boundary": 0.2,
        "catch-up.duration": 300.0,
    }
)
_ACCUMULATED: Final[Mapping[str, JsonValue]] = MappingProxyType({"metrics.busy-time.aggregator": "AVG"})
"""Lets the original take differences of busy time, as the others do, and not Flink's mean over a minute of real time."""
_DEMETERS: Final[Mapping[str, JsonValue]] = MappingProxyType(
    {
        "kubernetes.operator.reconcile.interval": INTERVAL_S,
        "stabilization.interval": 120.0,
        "metrics.window": 60.0,
        "utilization.target": 0.35,
        "target.utilization.boundary": 0.15,
        "restart.time": 60.0,
        "catch-up.duration": 300.0,
    }
)

_SLUICE: Final[Mapping[str, JsonValue]] = MappingProxyType(
    {
        "objective_s": IN_LOG_S,
        "attainment": 0.99,
        "least_between_s": LEAST_BETWEEN_S,
        "restart_s": RESTART_S,
        "interval_s": INTERVAL_S,
    }
)
_SLUICE_OFTEN: Final[Mapping[str, JsonValue]] = MappingProxyType({**_SLUICE, "interval_s": OFTEN_S})


@dataclass(frozen=True)
class Contender:
    """A policy with settings, all in the workload's time."""

    name: str
    policy: str
    settings: Mapping[str, JsonValue]
    source: str
    """Of the settings."""
    asks_broker: bool = False
    """Whether the broker counts what waits, as with `sluice autopilot --kafka`."""
    original: bool = False
    """Whether the operator's own autoscaler acts; the policy is Sluice's port of it, which the arena replays."""

    def made(self, peak_rate: float) -> Policy:
        """It, in the workload's time.

        Args:
            peak_rate: of the workload, records/s; `static` is provisioned for it.
        """
        return make_policy(self.policy, self.settings_for(peak_rate))

    def acting(self, peak_rate: float) -> Policy:
        """It, in real time."""
        return ScaledTime(self.made(peak_rate), FACTOR)

    def settings_for(self, peak_rate: float) -> dict[str, JsonValue]:
        known: dict[str, JsonValue] = {"rate": peak_rate} if self.policy == "static" else {}
        return known | dict(self.settings)


CONTENDERS: Final = (
    Contender(
        "static",
        "static",
        MappingProxyType({"interval_s": INTERVAL_S, "warm_up_s": LEAST_BETWEEN_S}),
        "for 1.2 times the peak, which it knows",
    ),
    Contender(
        "flink",
        "flink",
        _DOCUMENTED,
        "example in the documentation of the operator's autoscaler; stabilization and restart as for all",
    ),
    Contender(
        "flink-eager",
        "flink",
        MappingProxyType({**_DOCUMENTED, "scale-down.interval": 0}),
        "the same without its hour before a scale-down, so that it is not held back",
    ),
    Contender(
        "flink-demeter",
        "flink",
        MappingProxyType({"operator.release": "1.6", **_DEMETERS}),
        "Demeter's study, of release 1.6",
    ),
    Contender(
        "operator",
        "flink",
        MappingProxyType({**_DOCUMENTED, **_ACCUMULATED}),
        "as `flink`, release 1.10 of the original",
        original=True,
    ),
    Contender(
        "operator-tuned",
        "flink",
        MappingProxyType({**_DOCUMENTED, **_ACCUMULATED, "metrics.window": 60.0, "utilization.target": 0.75}),
        "as `operator`, with the window and target that cost it least in the arena (`arena/flink_tuning.py`)",
        original=True,
    ),
    Contender(
        "operator-demeter",
        "flink",
        MappingProxyType({**_DEMETERS, **_ACCUMULATED}),
        "as `flink-demeter`, release 1.10 of the original",
        original=True,
    ),
    Contender(
        "ds2",
        "ds2",
        MappingProxyType({"policy_interval_s": INTERVAL_S, "over_provisioning_factor": 0.2, "warm_up_intervals": 1}),
        "evaluation of autoscalers, section 6.1; warm-up as for all",
    ),
    Contender("sluice", "sluice", _SLUICE, "its defaults, for a lag-time of a minute"),
    Contender("sluice-broker", "sluice", _SLUICE, "as `sluice`; the broker counts what waits", asks_broker=True),
    Contender(
        "sluice-often", "sluice", _SLUICE_OFTEN, "as `sluice`, with decisions nearer to its default of every 10 s"
    ),
    Contender("sluice-broker-often", "sluice", _SLUICE_OFTEN, "both: with the broker, and as often", asks_broker=True),
)
BY_NAME: Final = MappingProxyType({one.name: one for one in CONTENDERS})
