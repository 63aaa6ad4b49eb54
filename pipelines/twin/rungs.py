"""The sizes that a twin is simulated with: each is stored as soon as it is known, so that a stopped run resumes after it."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Final

from pydantic import Field

from models.capacity.mst import MstSettings
from models.capacity.observation import Observation, OperatorRates
from models.capacity.twin.ladder import larger_rungs, tasks_of
from models.errors import Infeasible
from models.schema import Format, NonNegative, Positive, PositiveInt
from models.wording import amount
from pipelines.run import PipelineRun
from pipelines.twin.simulation import Twin, in_production, measured_like

BEYOND: Final = 1.5
"""Sizes are simulated until one takes so many times the target rate, or the cluster has no more slots."""
AT_ONCE: Final = 2
"""Sizes simulated at a time; the same everywhere, since the next ones begin from what these take."""
FOLDER: Final = "twin"


class Rung(Format):
    """A size, and what the twin takes there."""

    task_slots: PositiveInt
    memory_mb: Positive = Field(description="Memory of one TaskManager, MiB.")
    parallelism: dict[str, PositiveInt] = Field(
        description="Tasks of each operator; above the measured sizes without sources."
    )
    mst: NonNegative = Field(description="Records/s; 0 if the twin sustains no rate.")
    measured_mst: Positive | None = Field(None, description="As it was measured, records/s; null where it was not.")


@dataclass(frozen=True)
class Ladder:
    """What is simulated, and how."""

    run: PipelineRun
    twin: Twin
    inputs: Mapping[str, str]
    """Digests of what the twin was made from."""
    settings: MstSettings
    """Of the measurements."""
    workers: int
    """Of the testbed."""

    def measured(self, observations: list[Observation], memory_mb: float) -> list[Rung]:
        """The measured sizes, simulated as they were measured."""
        with ThreadPoolExecutor(AT_ONCE) as pool:
            return list(pool.map(lambda one: self._measured(one, memory_mb), observations))

    def _measured(self, one: Observation, memory_mb: float) -> Rung:
        measured_mst = one.mst if one.memory_mb == memory_mb else None
        return self._searched(one.task_slots, memory_mb, one.parallelism, one.bids2_rate or one.mst, measured_mst)

    def between(self, sizes: Sequence[int], memory_mb: float, rates: tuple[OperatorRates, ...]) -> list[Rung]:
        """Sizes between measured ones, simulated as these are; without those that the job sustains no rate with.

        Args:
            rates: of operators, by which BIDS2 dealt out the slots of what was measured.
        """
        job = self.run.job

        def make(slots: int) -> Rung:
            tasks, expected = tasks_of(job, rates, slots)
            wanted = self.twin.source_tasks(expected)
            sources = {name: min(count, job.operator(name).max_parallelism or count) for name, count in wanted.items()}
            return self._searched(slots, memory_mb, {**sources, **tasks}, expected, None)

        with ThreadPoolExecutor(AT_ONCE) as pool:
            return [rung for rung in pool.map(make, sizes) if rung.mst > 0]

    def _searched(
        self, slots: int, memory_mb: float, tasks: dict[str, int], expected: float, measured_mst: float | None
    ) -> Rung:
        """A size, simulated by the search of the measurements.

        Args:
            expected: what BIDS2 expects of it, records/s.
        """

        def make() -> Rung:
            settings = self.settings.model_copy(update={"warmup_rate": 1.5 * expected})
            mst = measured_like(self.twin, tasks, memory_mb, self.workers, settings)
            return Rung(task_slots=slots, memory_mb=memory_mb, parallelism=tasks, mst=mst, measured_mst=measured_mst)

        return self._once(slots, memory_mb, make)

    def larger(self, last: Rung, rates: tuple[OperatorRates, ...], most: int) -> Iterator[Rung]:
        """Larger sizes, until one takes BEYOND the target rate, or what catching up with an outage needs.

        Args:
            last: the largest measured size.
            rates: of operators, for BIDS2.
            most: task slots of the cluster.
        """
        wanted, enough = larger_rungs(last.task_slots, most), BEYOND * self.run.request.rate * self.run.request.catch_up
        per_slot = last.mst / last.task_slots
        for first in range(0, len(wanted), AT_ONCE):
            sizes = wanted[first : first + AT_ONCE]
            found = self.at({n: per_slot * n for n in sizes}, last.memory_mb, rates)
            yield from found
            if len(found) < len(sizes) or found[-1].mst >= enough:
                return
            per_slot = found[-1].mst / found[-1].task_slots

    def at(self, guesses: Mapping[int, float], memory_mb: float, rates: tuple[OperatorRates, ...]) -> list[Rung]:
        """Sizes above the measured ones; without those that the job cannot use or sustains no rate with.

        Args:
            guesses: near the MST of each size, records/s.
            rates: of operators, for BIDS2.
        """
        with ThreadPoolExecutor(AT_ONCE) as pool:
            made = list(pool.map(lambda size: self._larger(*size, memory_mb=memory_mb, rates=rates), guesses.items()))
        return [rung for rung in made if rung is not None and rung.mst > 0]

    def _larger(self, slots: int, guess: float, *, memory_mb: float, rates: tuple[OperatorRates, ...]) -> Rung | None:
        def make() -> Rung:
            mst = in_production(self.twin, tasks, memory_mb, guess)
            return Rung(task_slots=slots, memory_mb=memory_mb, parallelism=tasks, mst=mst)

        try:
            tasks, _ = tasks_of(self.run.job, rates, slots)
        except Infeasible:
            return None
        return self._once(slots, memory_mb, make)

    def _once(self, slots: int, memory_mb: float, make: Callable[[], Rung]) -> Rung:
        name = f"{memory_mb:g}-{slots:06}.json"
        rung = self.run.workspace.once(self.run.key(FOLDER, name), dict(self.inputs), Rung, make)
        beside = "" if rung.measured_mst is None else f"; measured {amount(rung.measured_mst)}"
        self.run.progress.say(f"twin: {slots} task slots take {amount(rung.mst)} records/s{beside}")
        return rung
