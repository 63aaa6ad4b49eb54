"""All sizes of a twin, with every memory, and the curve through them."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np

from models.capacity.growth.dataset import Dataset
from models.capacity.growth.twin import TwinCurve
from models.capacity.observation import Observation
from models.capacity.twin.fullest import FullestTask, Simulated, curve_of
from models.capacity.twin.ladder import measured_rungs, rungs_between
from models.errors import SluiceError
from models.job import Job
from pipelines.measuring.exploration_record import ExplorationRecord
from pipelines.twin.asking import answers, apart
from pipelines.twin.rungs import Ladder, Rung

MOST_TIMES_ASKED: Final = 3
"""How often the size that the answer falls on is simulated, which may move the answer."""
MOST_APART: Final = 2.0
"""Of two measured sizes, what the twin takes relative to what was measured: it may be wrong, but by a factor that hardly
changes. One that changes by more is no noise of measurements, of which each is off by a tenth."""


@dataclass(frozen=True)
class Climb:
    """Up the sizes of a ladder."""

    ladder: Ladder
    exploration: ExplorationRecord
    job: Job
    """The twin's."""
    most: int
    """Task slots of the cluster."""

    @cached_property
    def _data(self) -> Dataset:
        """What was measured."""
        return Dataset.of(self.exploration.observations)

    def climbed(self, levels: Sequence[float], also: Sequence[int]) -> tuple[list[list[Rung]], TwinCurve | None]:
        """The measured sizes, some between and above them, and those that the answer falls on.

        Args:
            levels: memory of a TaskManager, MiB.
            also: further sizes.

        Returns:
            A row for each memory, and the curve; none with fewer than two sizes that sustain a rate with every memory.

        Raises:
            SluiceError: what was measured contradicts the twin.
        """
        rows = [self._row(memory_mb) for memory_mb in levels]
        curve = self._curve(rows)
        for _ in range(MOST_TIMES_ASKED):
            if curve is None:
                break
            wanted = {*also, *answers(self.ladder.run.request, self.job, self._data, curve)}
            more = apart(wanted, rows[0], self._data.most_slots)
            if not more:
                break
            rows = self._with_sizes(rows, more, curve)
            curve = self._curve(rows)
        return rows, curve

    def _row(self, memory_mb: float) -> list[Rung]:
        measured = self.ladder.measured(measured_rungs(self.exploration.observations), memory_mb)
        check_measured(measured)
        if measured[-1].mst <= 0:
            return measured
        sizes = rungs_between([rung.task_slots for rung in measured])
        between = self.ladder.between(sizes, memory_mb, self._fewest.operators)
        within = sorted([*measured, *between], key=lambda rung: rung.task_slots)
        return [*within, *self.ladder.larger(measured[-1], self._largest.operators, self.most)]

    def _with_sizes(self, rows: Sequence[list[Rung]], sizes: Sequence[int], curve: TwinCurve) -> list[list[Rung]]:
        """The same with further sizes, which are looked for from the curve."""
        found = []
        for row in rows:
            memory_mb = row[0].memory_mb
            expected = np.exp(curve.log_mst(memory_mb, np.array(sizes, dtype=np.float64)))
            guesses = dict(zip(sizes, map(float, expected), strict=True))
            more = self.ladder.at(guesses, memory_mb, self._largest.operators)
            found.append(sorted([*row, *more], key=lambda rung: rung.task_slots))
        return found

    def _curve(self, rows: Sequence[Sequence[Rung]]) -> TwinCurve | None:
        by_memory = [{rung.task_slots: rung for rung in row if rung.mst > 0} for row in rows]
        common = sorted(set.intersection(*(set(row) for row in by_memory)))
        if len(common) < 2:
            return None
        sizes = [
            [Simulated(n, row[n].parallelism, row[n].mst, lasts=n > self._largest.task_slots) for n in common]
            for row in by_memory
        ]
        return curve_of([row[0].memory_mb for row in rows], sizes, FullestTask(self.job, self._largest.operators))

    @property
    def _fewest(self) -> Observation:
        """That of one task for each operator, from whose rates the others got their tasks."""
        return min(self.exploration.observations, key=lambda o: (o.task_slots, -o.memory_mb))

    @property
    def _largest(self) -> Observation:
        return max(self.exploration.observations, key=lambda o: (o.task_slots, o.memory_mb))


def check_measured(rungs: Sequence[Rung]) -> None:
    """Is the twin wrong by one factor, if at all, at all measured sizes?

    Raises:
        SluiceError: by MOST_APART or more at one than at another.
    """
    factors = {rung.task_slots: rung.mst / rung.measured_mst for rung in rungs if rung.measured_mst and rung.mst > 0}
    if not factors:
        return
    least, most = min(factors, key=factors.__getitem__), max(factors, key=factors.__getitem__)
    if factors[most] >= MOST_APART * factors[least]:
        raise SluiceError(
            f"it takes {factors[least]:.1f} times what was measured with {least} task slots and {factors[most]:.1f} times with "
            f"{most}, so something limits the job that the simulator does not know, such as a service that takes no more calls"
        )
