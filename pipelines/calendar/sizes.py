"""What the plan for each scheduled rate takes, worked out in a process of its own, and kept for a while.

python -m pipelines.calendar.sizes WORKSPACE JOB RATE...     # the last line is a JSON document
"""

import sys
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Final

from pydantic import Field

from models.errors import SluiceError
from models.resources.price import UsdPerHourInAll
from models.schema import Format
from pipelines.calendar.costs import SizedRate
from pipelines.planning.preview import answer_apart
from pipelines.store.plans import PlanStore
from pipelines.store.workspace import Workspace

KEPT_S: Final = 3600.0
"""A model that is registered meanwhile counts once this time is over, a new version of the plan at once."""
_MOST_KEPT: Final = 64


class RateSize(Format):
    """A rate, and what its plan takes."""

    rate: float = Field(description="Records/s at the sources together.")
    slots: int | None = Field(description="Slots of all tasks; None where no plan reaches the rate.")
    price_per_hour: UsdPerHourInAll | None = Field(description="Of the fewest TaskManagers, USD; None where unknown.")
    why_not: str | None = Field(description="Why no plan reaches the rate.")


class RateSizes(Format):
    """All rates of a schedule, or why none is known."""

    sizes: tuple[RateSize, ...] = ()
    why_not: str | None = None


Ask = Callable[[Workspace, str, Sequence[float]], RateSizes]


def sizes_apart(workspace: Workspace, job: str, rates: Sequence[float]) -> RateSizes:
    """The sizes of some rates, from a process that ends with it. Raises as `answer_apart`."""
    return answer_apart("pipelines.calendar.sizes", (workspace.url, job, *map(repr, rates)), RateSizes)


class KeptSizes:
    """Sizes of the schedules that people look at, for one process with threads."""

    def __init__(self, ask: Ask = sizes_apart, clock: Callable[[], float] = time.monotonic) -> None:
        """
        Args:
            clock: seconds.
        """
        self._ask, self._clock = ask, clock
        self._kept: OrderedDict[tuple[object, ...], tuple[float, RateSizes]] = OrderedDict()
        self._lock = threading.Lock()

    def of(self, workspace: Workspace, job: str, rates: Sequence[float]) -> dict[float, SizedRate]:
        """What each rate takes, as `sized_rates` works it out.

        Raises:
            PreviewBusy: another job's are being worked out.
            SluiceError: nothing sizes the job, or the process failed.
        """
        asked = tuple(sorted(set(rates)))
        key = (workspace.url, job, PlanStore(workspace).current(job).version, asked)
        with self._lock:
            kept = self._kept.get(key)
        if kept is None or self._clock() - kept[0] > KEPT_S:
            kept = (self._clock(), self._ask(workspace, job, asked))
            with self._lock:
                self._kept[key] = kept
                self._kept.move_to_end(key)
                while len(self._kept) > _MOST_KEPT:
                    self._kept.popitem(last=False)
        if kept[1].why_not is not None:
            raise SluiceError(kept[1].why_not)
        return {one.rate: SizedRate(one.slots, one.price_per_hour, one.why_not) for one in kept[1].sizes}


def sizes(workspace: Workspace, job: str, rates: Sequence[float]) -> RateSizes:
    """The sizes of some rates; nothing is stored."""
    from pipelines.calendar.pricing import sized_rates

    try:
        found = sized_rates(workspace, job, rates)
    except SluiceError as error:
        return RateSizes(why_not=str(error))
    return RateSizes(
        sizes=tuple(
            RateSize(rate=rate, slots=one.slots, price_per_hour=one.price_per_hour, why_not=one.why_not)
            for rate, one in found.items()
        )
    )


if __name__ == "__main__":
    _url, _job, *_rates = sys.argv[1:]
    sys.stdout.write("\n" + sizes(Workspace(_url), _job, [float(rate) for rate in _rates]).model_dump_json())
