"""Published or archived measurements as a testbed: only recorded configurations can be deployed."""

import math
import random
from collections.abc import Mapping, Sequence
from typing import Final

from models.capacity.observation import Observation
from models.closing import Closing
from models.cluster import Cluster
from models.errors import Infeasible, InvalidInput, SluiceError
from models.job import Job, Kind
from testbeds.placing import check_parallelism
from testbeds.protocol import SAMPLE_SCHEMA, Configuration, Limits, MeasuredWindow, sample_intervals

MOST_SHOWN: Final = 5


class Recorded:
    """Implements `testbeds.protocol.Testbed` as far as observations allow: they only hold the MST.

    A run of a recorded configuration emits the offered rate up to the recorded MST, and the MST beyond it. The first
    follows from the definition of the MST; the second is an approximation (StreamBed's verification runs of q1 emitted up
    to 24 % more when offered 150 %, others less than the MST). So an MST search on a recorded run ends at the recorded MST,
    which is all that an exploration needs. No samples were published, so every table is empty, and profiles and features
    must come from elsewhere.

    Only recorded configurations can be deployed: no other budgets, no other parallelism if it is known, no placement, no
    managed memory per task. If a budget was measured several times, the seed chooses which measurement is repeated.
    """

    def __init__(self, observations: Sequence[Observation], cluster: Cluster) -> None:
        """A testbed of `observations`, made on the workers of `cluster`.

        Raises:
            InvalidInput: there are no observations.
        """
        if not observations:
            raise InvalidInput(
                "a recorded testbed needs at least one observation, but got none; check the measurements"
            )
        self._observations = tuple(observations)
        self._cluster = cluster

    @property
    def name(self) -> str:
        return "recorded"

    @property
    def observations(self) -> tuple[Observation, ...]:
        """The measurements, in the order of recording."""
        return self._observations

    @property
    def limits(self) -> Limits:
        """The most task slots and the memory sizes that occur; not every combination is recorded."""
        return Limits(
            max_task_slots=max(o.task_slots for o in self._observations),
            memory_levels_mb=tuple(sorted({o.memory_mb for o in self._observations})),
            slots_per_worker=max(w.slots for w in self._cluster.workers),
        )

    @property
    def cluster(self) -> Cluster:
        return self._cluster

    def deploy(self, job: Job, configuration: Configuration, *, run: str, seed: int) -> "RecordedRun":
        """Repeat a recorded measurement; see `testbeds.protocol.Testbed.deploy`.

        Raises:
            InvalidInput: the configuration does not fit the job, or was not recorded.
            Infeasible: it needs more slots than any recorded configuration, or memory outside the recorded sizes.
        """
        check_parallelism(job, configuration)
        if configuration.placement is not None or configuration.managed_memory_mb:
            raise InvalidInput(
                "recorded measurements hold no placement and no managed memory of a task, so neither can be chosen; "
                "leave them out"
            )
        candidates = self._recorded(job, configuration)
        return RecordedRun(candidates[random.Random(seed).randrange(len(candidates))])

    def _recorded(self, job: Job, configuration: Configuration) -> list[Observation]:
        slots = sum(configuration.parallelism[o.name] for o in job.scaled_operators)
        limits, memory_mb = self.limits, configuration.memory_mb
        levels = limits.memory_levels_mb
        if slots > limits.max_task_slots or not levels[0] <= memory_mb <= levels[-1]:
            raise Infeasible(
                f"the recorded measurements have at most {limits.max_task_slots} task slots with {levels[0]:g} to "
                f"{levels[-1]:g} MiB per TaskManager, but {slots} task slots with {memory_mb:g} MiB were requested"
            )
        of_budget = [o for o in self._observations if (o.task_slots, o.memory_mb) == (slots, memory_mb)]
        if not of_budget:
            raise InvalidInput(
                f"{slots} task slots with {memory_mb:g} MiB per TaskManager were not recorded; the nearest that were: "
                f"{self._nearest(slots, memory_mb)}"
            )
        same = [o for o in of_budget if _same_parallelism(job, o.parallelism, configuration.parallelism)]
        if not same:
            known = ", ".join(f"{name} {tasks}" for name, tasks in of_budget[0].parallelism.items())
            raise InvalidInput(
                f"{slots} task slots with {memory_mb:g} MiB per TaskManager were recorded with another parallelism only; "
                f"ask for {known}"
            )
        return same

    def _nearest(self, slots: int, memory_mb: float) -> str:
        def distance(budget: tuple[int, float]) -> tuple[float, float]:
            return abs(math.log(budget[1] / memory_mb)), abs(budget[0] - slots)

        budgets = sorted({(o.task_slots, o.memory_mb) for o in self._observations}, key=distance)
        return ", ".join(f"{s} with {m:g} MiB" for s, m in budgets[:MOST_SHOWN])


class RecordedRun(Closing):
    """Implements `testbeds.protocol.Run` for one observation."""

    def __init__(self, observation: Observation) -> None:
        self.observation = observation
        self._elapsed_s = 0.0
        self._rate: float | None = None
        self._pending = 0.0
        self._closed = False

    @property
    def elapsed_s(self) -> float:
        """Time injected so far, seconds."""
        return self._elapsed_s

    def inject(self, rate: float, seconds: float, phase: str) -> MeasuredWindow:
        """Offer `rate` records/s: achieved is that, or the recorded MST where it is lower; the samples are empty.

        Raises:
            InvalidInput: the rate is not above 0, or `seconds` is not a multiple of the reporting interval.
            SluiceError: the run was closed.
        """
        if self._closed:
            raise SluiceError("a closed run cannot be injected into; deploy the job again")
        sample_intervals(rate, seconds)
        achieved = min(rate, self.observation.mst)
        self._pending = (self._pending if rate == self._rate else 0.0) + (rate - achieved) * seconds
        self._rate = rate
        self._elapsed_s += seconds
        return MeasuredWindow(rate, achieved, seconds, self._pending, SAMPLE_SCHEMA.empty_table())

    def close(self) -> None:
        """Close the run; it takes no more rates."""
        self._closed = True


def _same_parallelism(job: Job, recorded: Mapping[str, int], asked: Mapping[str, int]) -> bool:
    """Whether they agree, if it was recorded; sources are not compared, since they must never limit the job."""
    scaled = [o.name for o in job.operators if o.kind is not Kind.SOURCE]
    return all(recorded.get(name, asked[name]) == asked[name] for name in scaled)
