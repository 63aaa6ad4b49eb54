"""CPU time stolen by a hypervisor for other machines, during which a job takes fewer records."""

import time
from collections.abc import Callable
from typing import Final, TypeVar

import psutil

from testbeds.flink.measuring.meter import NoNews

T = TypeVar("T")
MOST: Final = 0.05
"""Largest stolen share of the requested CPU time in an undisturbed window."""
STEP_S: Final = 5.0
TRIES: Final = 2
"""CPU time is mostly stolen for minutes at a time, so it is better to wait than to measure meanwhile."""


class StolenTime:
    """CPU time stolen since this object was made."""

    def __init__(self) -> None:
        self._asked_s, self._stolen_s = _so_far()

    def share(self) -> float:
        """Stolen share of the CPU time that this machine requested; 0 if the system does not report it."""
        asked_s, stolen_s = _so_far()
        return (stolen_s - self._stolen_s) / max(asked_s - self._asked_s, 1e-9)


def is_stolen_from() -> bool:
    """Whether a hypervisor has ever stolen CPU time from this machine."""
    return _so_far()[1] > 0


class Patience:
    """A budget of time to wait until little CPU time is stolen."""

    def __init__(self, seconds: float) -> None:
        self._left_s = seconds

    def wait(self, report: Callable[[str], None]) -> None:
        """Wait until at most MOST was stolen during STEP_S, or the budget is used up. The machine must be busy meanwhile, since
        no time is stolen from an idle one.
        """
        if self._left_s > 0:
            report("the hypervisor gives much of the processor time to other machines; waiting for that to end")
        while self._left_s > 0:
            stolen = StolenTime()
            time.sleep(STEP_S)
            self._left_s -= STEP_S
            if stolen.share() <= MOST:
                return


def least_stolen(measure: Callable[[], T], patience: Patience, report: Callable[[str], None]) -> T:
    """Measure, and repeat once if more than MOST was stolen or Flink did not report in time.

    Args:
        patience: budget for the wait before the repetition.
        report: called for waits, and with the stolen share of the returned measurement if that is above MOST.

    Returns:
        The measurement with the smaller stolen share.

    Raises:
        NoNews: Flink did not report in time twice.
    """
    found: list[tuple[float, T]] = []
    silences: list[NoNews] = []
    while len(found) + len(silences) < TRIES:
        stolen = StolenTime()
        try:
            result = measure()
        except NoNews as silence:
            silences.append(silence)
            continue
        found.append((stolen.share(), result))
        if found[-1][0] <= MOST:
            return result
        if len(found) + len(silences) < TRIES:
            patience.wait(report)
    if not found:
        raise silences[-1]
    share, best = min(found, key=lambda one: one[0])
    report(
        f"the hypervisor gave {share:.0%} of the processor time or more to other machines whenever this was measured; "
        "what the job takes is more than was measured"
    )
    return best


def _so_far() -> tuple[float, float]:
    """CPU seconds asked for and stolen since the machine started."""
    times = psutil.cpu_times()
    stolen: float = getattr(times, "steal", 0.0)
    return times.user + getattr(times, "nice", 0.0) + times.system + stolen, stolen
