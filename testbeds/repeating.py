"""Repeats a measurement that a fault of the testbed interrupted, so that every figure was measured to its end."""

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
    """Deploy the job and measure it, from the beginning again if the testbed breaks down meanwhile.

    Args:
        measure: what to do with the run, which is closed afterwards; nothing of a run that broke down is kept.
        say: called with each repetition and its cause.

    Raises:
        SluiceError: it broke down each time, or could not be deployed.
    """
    left = REPEATS
    while True:
        try:
            with testbed.deploy(job, configuration, run=run, seed=seed) as deployed:
                return measure(deployed)
        except Disturbed as error:
            if left == 0:
                raise SluiceError(
                    f"measuring job {job.name!r} on the testbed {testbed.name!r} broke off {REPEATS + 1} times, at last "
                    f"because {error}"
                ) from error
            say(f"{testbed.name}: {error}; measuring again, {_times(left)} at most")
            left -= 1


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count} times"
