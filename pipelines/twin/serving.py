"""What a twin predicts of a plan that serves records from a log: how long they wait, and how soon an outage is recovered from.

The plan's own tasks are simulated, as a production run: newly deployed, settled, then observed. Records arrive evenly; how
long they wait is computed as the arena does (`pipelines.arena.replays.latency`).
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from models.metrics import SAMPLE_INTERVAL_S
from models.objectives.objectives import LagObjective, RecoveryObjective
from models.planning.meeting import Foreseen
from pipelines.arena.replays.latency import waiting
from pipelines.twin.simulation import SEED, Twin
from testbeds.protocol import Configuration
from testbeds.simulator import Simulator
from testbeds.simulator.run import SimulatedRun
from testbeds.simulator.settings import Rescaling

SETTLE_S: Final = 120.0
OBSERVE_S: Final = 600.0
_INSTANT: Final = 1e15
"""Bytes/s, so that state takes no time: an outage lasts as long as it is stated to."""


@dataclass(frozen=True)
class ServingTwin:
    """What serves the records."""

    twin: Twin
    tasks: Mapping[str, int]
    """Of each operator, sources included."""
    memory_mb: float
    """Of one TaskManager."""

    def deployed(self, twin: Twin) -> SimulatedRun:
        sources = {s.name for s in twin.job.sources}
        slots = sum(n for name, n in self.tasks.items() if name not in sources)
        testbed = Simulator(
            twin.cluster(max(slots, twin.production_workers * twin.worker.slots)), (self.memory_mb,), twin.machine
        )
        return testbed.deploy(twin.job, Configuration(dict(self.tasks), self.memory_mb), run="twin", seed=SEED)


def foresee(
    served: ServingTwin, rate: float, lag: LagObjective | None = None, recovery: RecoveryObjective | None = None
) -> Foreseen:
    """What the twin predicts of the objectives that are given.

    Args:
        rate: records/s that arrive at the sources together.
    """
    return Foreseen(
        lag_s=None if lag is None else lag_quantile_s(served, rate, lag.share),
        recovery_s=None if recovery is None else time_to_recover_s(served, rate, recovery),
        rate=rate,
    )


def lag_quantile_s(served: ServingTwin, rate: float, share: float) -> float:
    """Seconds within which this share of the records that arrive in OBSERVE_S is read.

    Records that are not read by the end count with what they have waited until then.
    """
    with served.deployed(served.twin) as run:
        windows = [run.serve(rate, seconds) for seconds in (SETTLE_S, OBSERVE_S)]
    found = waiting(
        np.concatenate([w.arrived for w in windows]),
        np.concatenate([w.read for w in windows]),
        SAMPLE_INTERVAL_S,
        skipped=round(SETTLE_S / SAMPLE_INTERVAL_S),
    )
    assert found is not None, "records arrive at a rate above 0"
    return found.quantiles((share,))[0]


def time_to_recover_s(served: ServingTwin, rate: float, recovery: RecoveryObjective) -> float:
    """Seconds from the end of the outage until as little waits as before it, or what arrives in a reporting interval.

    Infinite where that takes more than twice the objective's time.
    """
    down_s = recovery.outage_s + recovery.restart_s
    stopped = Rescaling(
        restart_s=down_s, save_bytes_per_s=None, restore_bytes_per_s=_INSTANT, new_jvms=False, drain_counts=False
    )
    machine = served.twin.machine.model_copy(update={"rescaling": stopped})
    with served.deployed(replace(served.twin, machine=machine)) as run:
        before = run.serve(rate, SETTLE_S)
        run.rescale(run.configuration)
        after = run.serve(rate, _whole(down_s + 2 * recovery.within_s))
    usual = max(float(before.lag[len(before.lag) // 2 :].max()), rate * SAMPLE_INTERVAL_S)
    first_up = math.floor(down_s / SAMPLE_INTERVAL_S)
    recovered = np.flatnonzero(after.lag[first_up:] <= usual)
    if not len(recovered):
        return math.inf
    return max((first_up + int(recovered[0]) + 1) * SAMPLE_INTERVAL_S - recovery.outage_s, recovery.restart_s)


def _whole(seconds: float) -> float:
    """At least so long, in whole reporting intervals."""
    return math.ceil(seconds / SAMPLE_INTERVAL_S) * SAMPLE_INTERVAL_S
