"""The MST by drain, as a dialogue of rates: a job whose topics keep what it does not take is offered more than it takes, and
what it takes is its capacity.

It stays behind from the warm-up on, so no rate has to be looked for: windows follow one another until two in a row agree
within the sensitivity. The MST is their mean. As in any drain the job is seen at full buffers and in large batches; whether
it sustains that rate for long is what an injection shows.
"""

from collections.abc import Generator
from itertools import pairwise
from typing import Final

from models.capacity.mst import Injection, MstMeasurement, Phase, Stop, Trial
from models.wording import amount

OVER: Final = 2.0
"""The job is offered so many times what it took last."""


class OverloadMeasurement(MstMeasurement):
    """Measuring by drain; its MST is what was taken while more was offered, or the most that was taken where it never fell
    behind.

    The settings are the durations of the warm-up and of a window, most iterations, the sensitivity, and the share of a target
    from which the job keeps up with it.
    """

    @property
    def reason(self) -> str | None:
        if self._stop is None:
            return None
        if self._stop is Stop.NO_FLOW or self._mst is None:
            return "no record was taken by the end of the warm-up, so there is no rate to begin with"
        if not self._behind:
            return f"it kept up with all {len(self._trials)} rates, the highest being {amount(self._mst)} records/s"
        agree = "two windows in a row agree" if self._stop is Stop.CONVERGED else "no two windows in a row agree"
        return f"it took {amount(self._mst)} records/s while more was offered; {agree} within {self.settings.sensitivity:.0%}"

    @property
    def _behind(self) -> list[float]:
        """What was taken in the windows in which more was offered."""
        return [one.achieved_rate for one in self._trials if not one.sustained]

    def _run(self) -> Generator[Injection, float, None]:
        settings = self.settings
        taken = yield Injection(settings.warmup_rate, settings.warmup_s, Phase.WARMUP)
        if taken == 0:
            self._stop = Stop.NO_FLOW
            return
        for _ in range(settings.iterations - 1):
            target = OVER * taken
            taken = yield Injection(target, settings.observe_s, Phase.OBSERVE)
            sustained = taken >= settings.sustained_ratio * target
            self._trials.append(Trial(target_rate=target, achieved_rate=taken, sustained=sustained))
            if self._conclude():
                self._stop = Stop.CONVERGED
                return
            if taken == 0:
                break
        self._stop = Stop.ITERATIONS

    def _conclude(self) -> bool:
        """Whether the last two windows agree."""
        behind = self._behind
        self._mst = sorted(behind)[len(behind) // 2] if behind else max(one.achieved_rate for one in self._trials)
        for before, last in pairwise(self._trials[-2:]):
            first, second = before.achieved_rate, last.achieved_rate
            close = abs(first - second) <= self.settings.sensitivity * max(first, second)
            if close and not (before.sustained or last.sustained):
                self._mst = (first + second) / 2
                return True
        return False
