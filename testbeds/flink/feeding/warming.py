"""Warm-up: the JVMs compile the program; before that a record costs up to ten times as much."""

import time
from collections.abc import Callable
from typing import Final

from flink_client.rest.waiting import wait_for
from models.job import Job
from testbeds.feeding.control import SourceControl
from testbeds.flink.feeding.emitted import SourceMeter
from testbeds.flink.submission import Deployed
from testbeds.steady import is_steady

WINDOW_S: Final = 3.0
MOST_WINDOWS: Final = 30
WARM_UP_S: Final = 12.0
WARM_AGAIN_S: Final = 10.0
"""Warm-up in JVMs that have run the same program: only the code that Flink generates per job is compiled again."""
DRAIN_S: Final = 12.0
"""Longer than the windows of Nexmark, so that they release the records of the warm-up."""
DRAIN_RATE: Final = 1000.0
"""Records/s: event time advances, so that windows fire."""
_ALL_IT_TAKES: Final = 1e9
"""Records/s beyond the capacity of any job here."""
_FOLLOW_S: Final = 20.0
_LOOK_EVERY_S: Final = 0.1


def offer(control: SourceControl, job: Job, deployed: Deployed, rate: float) -> str:
    """Offer these records/s to all sources together. Returns the id of the order."""
    return control.offer({deployed.sources[o.name]: rate * o.rate_share for o in job.sources})


def warm_up(control: SourceControl, job: Job, deployed: Deployed, seconds: float) -> None:
    """Overload a job for this long, so that the code paths of full buffers are compiled, too; then let its windows release
    their records.
    """
    offer(control, job, deployed, _ALL_IT_TAKES)
    time.sleep(seconds)
    if any(o.keys is not None for o in job.operators):
        offer(control, job, deployed, DRAIN_RATE)
        time.sleep(DRAIN_S)


def run_until_steady(control: SourceControl, job: Job, deployed: Deployed, check: Callable[[], None]) -> float:
    """Overload a job until its throughput grows no more, or MOST_WINDOWS have passed.

    Args:
        check: called in between; raises if the job cannot continue.

    Returns:
        Its highest throughput, records/s.

    Raises:
        SluiceError: the sources do not follow.
    """
    meter = SourceMeter.of_job(control, deployed)
    meter.follow(offer(control, job, deployed, _ALL_IT_TAKES))

    def all_follow() -> bool | None:
        meter.read()
        return meter.all_follow or None

    wait_for(all_follow, _FOLLOW_S, f"the source tasks of job {deployed.id}", pause_s=_LOOK_EVERY_S)
    rates: list[float] = []
    begin, before = time.monotonic(), sum(meter.last().values())
    while not is_steady(rates) and len(rates) < MOST_WINDOWS:
        time.sleep(WINDOW_S)
        check()
        meter.read()
        now, after = time.monotonic(), sum(meter.last().values())
        rates.append((after - before) / (now - begin))
        begin, before = now, after
    return max(rates)
