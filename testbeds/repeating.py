"""Repeats measurements that a fault of the testbed interrupted."""

from collections.abc import Callable
from typing import Final, TypeVar

from models.errors import SluiceError
from models.job import Job
from testbeds.protocol import Configuration, Disturbed, Run, Testbed

T = TypeVar("T")
REPEATS: Final = 2
"""How often a measurement is repeated before it is given up."""


def measured(
    testbed: Testbed,
    job: Job,
    configuration: Configuration,
    measure: Callable[[Run], T],
    *,
    run: str,
    seed: int,
    say: Callable[[str], None],
) -> T:
    """Deploy the job and measure it; repeat all of that if the testbed fails meanwhile.

    Args:
        measure: measures the run, which is closed afterwards; results of an interrupted run are discarded.
        say: called with each repetition and its cause.

    Raises:
        SluiceError: it was interrupted each time, or could not be deployed.
    """
    left = REPEATS
    while True:
        try:
            with testbed.deploy(job, configuration, run=run, seed=seed) as deployed:
                return measure(deployed)
        except Disturbed as error:
            if left == 0:
                raise SluiceError(
                    f"measuring job {job.name!r} on the testbed {testbed.name!r} was interrupted {REPEATS + 1} times, the "
                    f"last time because {error}"
                ) from error
            say(f"{testbed.name}: {error}; measuring again, {_times(left)} at most")
            left -= 1


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count} times"
