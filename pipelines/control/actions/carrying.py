"""Waiting while an action is carried out, and how it ends."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final, Literal

from flink_client.jobs.running import awaited
from flink_client.rest.client import FlinkRest
from flink_client.rest.waiting import TimedOut

LOOK_EVERY_S: Final = 0.2
BACK_S: Final = 60.0
"""Shortest time limit for the former tasks to run again."""

CarriedDone = Literal["rescaled", "refused", "failed", "rolled-back"]


@dataclass(frozen=True)
class Carried:
    """How an intent ended."""

    done: CarriedDone
    flink_job: str
    seconds: float
    """From the first request of this process to the end."""
    downtime_s: float | None
    """From the last look at which all former tasks ran to the first at which all wanted ones did."""
    why: str | None = None
    flinks_rescale_s: float | None = None
    someone_else: bool = False
    """Whether others have changed the requirements meanwhile, which were left alone."""
    as_placed: bool | None = None
    """Whether the tasks run where the placement hook was to put them; None where it was not asked, or that was not seen."""


class Carrying:
    """Looks at the cluster again and again while an action is carried out, and measures its time."""

    def __init__(
        self,
        rest: FlinkRest,
        beat: Callable[[], None] = lambda: None,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        """
        Args:
            beat: called while it waits; it may raise to end the waiting.
        """
        self._rest, self._beat, self._clock, self._sleep = rest, beat, clock, sleep
        self.begin()

    def begin(self) -> None:
        """The action is carried out from now on."""
        self._begun_s = self._up_s = self._clock()

    def state(self, job: str) -> str | None:
        """Of a job; None if Flink does not know it."""
        answer = self._rest.get_if_there(f"/jobs/{job}")
        return None if answer is None else str(answer["state"])

    def until_runs(self, job: str, wanted: Mapping[str, int], former: Mapping[str, int], seconds: float) -> None:
        """Until all tasks run as wanted.

        Raises:
            NotRunning: the job has ended.
            TimedOut: they do not.
        """

        def missing() -> str | None:
            running, what = awaited(self._rest, job, wanted)
            if (
                what is not None
                and running is not None
                and all(running.parallelism.get(v) == n for v, n in former.items())
            ):
                self._up_s = self._clock()
            return what

        self.until(missing, seconds)

    def until(self, missing: Callable[[], str | None], seconds: float) -> None:
        """Until nothing is missing any more; raises TimedOut."""
        until = self._clock() + seconds
        while (what := missing()) is not None:
            if self._clock() > until:
                raise TimedOut(f"{what} after {seconds:g} s")
            self._beat()
            self._sleep(LOOK_EVERY_S)

    def ended(self, done: CarriedDone, job: str, why: str | None, *, someone_else: bool = False) -> Carried:
        """How it ended, now."""
        now_s = self._clock()
        downtime_s = now_s - self._up_s if done == "rescaled" else None
        return Carried(done, job, now_s - self._begun_s, downtime_s, why, None, someone_else)
