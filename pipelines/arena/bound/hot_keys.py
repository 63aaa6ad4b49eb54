"""What keys that are hot in turn cost an operator, whatever the policy: tasks wait for the one that has the hot key.

| symbol | meaning | unit |
|---|---|---|
| p, g_j | tasks, share of the key groups that task j has | |
| h, H | share of records that have the hot key, records for which a key is hot | -, records into the operator |
| f | share of a record's work that is done when windows fire | |
| K | records that can wait at a task | H records |
| q_j | work that waits at task j | H c, c the time per record |

Let the records of one hot key arrive at once, at its beginning, and be sent as early as there is room for them at its end. This
relaxes what the simulator does, so it takes no less time than tau, with

    in_j = (1 - f) (h [j has the hot key] + (1 - h) g_j) + f g_j        work of firing spread evenly
    tau = max(0, max_j (q_j + in_j - (1 - f) K))
    q_j <- max(0, q_j + in_j - tau)

Empty tasks are the best beginning, and fuller ones only take longer, so the mean time of n keys from there is a convex
function of n and lies above each of its tangents. One is taken from random sequences of keys: a slope, and a time that is
saved once in a deployment.

Blocks of `BLOCK` keys a task deviate from the mean. In all but one of a thousand replays any w of them in a row take at least
their mean less `SPREADS_A_BLOCK` w + `SPREADS_AT_ONCE` standard deviations: a walk of independent steps with standard
deviation 1 and drift -a exceeds x with a probability of about exp(-2 a x), and it can begin at a thousand blocks.
"""

from dataclasses import dataclass
from functools import lru_cache
from typing import Final

import numpy as np

from models.compiled import compiled
from models.dataflow import Partitioning
from models.job import Job
from models.keys.groups import key_groups
from testbeds.simulator.layout.buffers import room_per_task
from testbeds.simulator.settings import Physics

SPREADS_A_BLOCK: Final = 0.2
SPREADS_AT_ONCE: Final = 34.5
BLOCK: Final = 96
_RUNS, _FIRST, _BLOCKS = 8, 6, 24
"""Sequences; blocks until the tasks are as full as they become; blocks of a sequence."""


@dataclass(frozen=True)
class HotLoad:
    """Least work of the tasks that others wait for."""

    share: float
    """In place of m(p): the slope, time over records that pass, in c."""
    saved: float
    """Once in a deployment, H records."""
    deviation: float
    """Standard deviation of a block, H records."""


@dataclass(frozen=True)
class HotKeys:
    """The hot keys of an operator."""

    upstream: str
    """The operator whose tasks send it its records."""
    share: float
    """h."""
    records: float
    """H."""
    fires: float
    """f."""
    groups: int | None
    """Key groups; None: Flink's default."""
    record_bytes: float

    def waiting(self, tasks: int, tasks_upstream: int, physics: Physics) -> HotLoad | None:
        """None where the key groups do not suffice for so many tasks."""
        total = self.groups or key_groups(tasks)
        if tasks > total:
            return None
        room = room_per_task(np.ones(tasks_upstream), np.ones(1), tasks, self.record_bytes, physics.flink)[0]
        return _waiting(total, tasks, self.share, self.fires, round(float(room) / self.records + 0.005, 2))


def hot_keys(job: Job, name: str, physics: Physics) -> HotKeys | None:
    """Those of an operator; None unless its records come by one hashed edge and records decide how long a key is hot."""
    operator, edges = job.operator(name), job.upstream_edges(name)
    keys = operator.keys
    if keys is None or keys.hot_period_records is None or len(edges) != 1:
        return None
    few = keys.hot_period_records * keys.hot_share < physics.least_hot_records
    if few or edges[0].partitioning is not Partitioning.HASH:
        return None
    return HotKeys(
        upstream=edges[0].upstream,
        share=keys.hot_share,
        records=keys.hot_period_records,
        fires=0.0 if operator.window is None else operator.window.fire_share,
        groups=job.key_groups,
        record_bytes=max(job.operator(edges[0].upstream).cost.bytes_out, physics.least_record_bytes),
    )


@lru_cache(maxsize=4096)
def _waiting(total: int, tasks: int, share: float, fires: float, room: float) -> HotLoad:
    groups = np.diff(-(-np.arange(tasks + 1) * total // tasks)) / total
    random = np.random.default_rng(tasks)
    keys = random.choice(tasks, size=(_RUNS, _BLOCKS, BLOCK * tasks), p=groups)
    blocks = task_times(keys, groups, share, fires, room)
    settled = blocks[:, _FIRST:]
    deviation = float(np.std(settled))
    mean = float(np.mean(settled)) - 3 * deviation / np.sqrt(settled.size)
    slope = mean / (BLOCK * tasks)
    # The line touches the mean time where the blocks that count begin.
    saved = slope * _FIRST * BLOCK * tasks - float(np.mean(np.sum(blocks[:, :_FIRST], axis=1)))
    return HotLoad(slope - SPREADS_A_BLOCK * deviation / (BLOCK * tasks), max(saved, 0.0), deviation)


@compiled
def task_times(keys: np.ndarray, groups: np.ndarray, share: float, fires: float, room: float) -> np.ndarray:
    """Time of each block, in H c; float64[runs, blocks].

    Args:
        keys: task of each hot key, int64[runs, blocks, keys].
    """
    even = ((1.0 - fires) * (1.0 - share) + fires) * groups
    hot, room = (1.0 - fires) * share, (1.0 - fires) * room
    found = np.zeros(keys.shape[:2])
    for run in range(keys.shape[0]):
        work = np.zeros(len(groups))
        for block in range(keys.shape[1]):
            for key in keys[run, block]:
                work += even
                work[key] += hot
                passed = max(np.max(work) - room, 0.0)
                work = np.maximum(work - passed, 0.0)
                found[run, block] += passed
    return found
