"""The budgets that may be measured, and the history of those that were."""

from collections.abc import Sequence
from functools import cached_property
from typing import Literal, Self

import numpy as np
from pydantic import Field, model_validator

from models.capacity.growth.dataset import Dataset
from models.capacity.growth.regressions import REGRESSIONS, loocv_rmse
from models.capacity.observation import Budget
from models.capacity.sizing import SlotsInterval
from models.schema import Format, NonNegative, Positive, PositiveInt


class SearchSpace(Format):
    """The budgets that may be measured."""

    min_slots: PositiveInt = Field(description="Fewest task slots: one for each operator but the sources.")
    max_slots: PositiveInt = Field(description="Most task slots of the testbed.")
    memory_levels_mb: tuple[Positive, ...] = Field(
        min_length=1, description="TaskManager memory sizes, MiB, ascending."
    )

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.min_slots > self.max_slots:
            raise ValueError(
                f"min_slots <= max_slots must hold, but got (min_slots={self.min_slots}, max_slots={self.max_slots})"
            )
        if list(self.memory_levels_mb) != sorted(set(self.memory_levels_mb)):
            raise ValueError(f"memory_levels_mb must ascend without repeats, but got {list(self.memory_levels_mb)}")
        return self

    @cached_property
    def corners(self) -> tuple[Budget, ...]:
        """Lowest and highest slots at the lowest, then at the highest memory; fewer where those coincide."""
        levels = self.memory_levels_mb
        return tuple(
            Budget(task_slots=slots, memory_mb=memory)
            for memory in dict.fromkeys((levels[0], levels[-1]))
            for slots in dict.fromkeys((self.min_slots, self.max_slots))
        )

    def __contains__(self, budget: Budget) -> bool:
        return self.min_slots <= budget.task_slots <= self.max_slots and budget.memory_mb in self.memory_levels_mb


Suggester = Literal["corner", "bayesian", "gap", "target", "recorded"]
"""Who chose a budget: the corners of the space, Bayesian optimisation of the LOOCV error, the widest gap, the interval of
the slots for the target rate, or whoever made the recorded measurements."""


class ExplorationStep(Format):
    """One measured budget, and how good the models were after it."""

    budget: Budget
    mst: Positive = Field(description="Measured MST, records/s.")
    loocv: dict[str, NonNegative] = Field(
        description="LOOCV RMSE of each candidate with all measurements so far, records/s; empty after a single one."
    )
    suggested_by: Suggester
    # Omitted if absent, so that explorations of earlier versions keep their digests.
    slots_needed: SlotsInterval | None = Field(
        None,
        exclude_if=lambda needed: needed is None,
        description="Task slots for the target rate, by all measurements so far; absent where they do not determine any, "
        "or were not asked for.",
    )

    @property
    def error(self) -> float | None:
        """The cost: the lowest LOOCV error (Eq. 9), records/s; None after a single measurement."""
        return min(self.loocv.values()) if self.loocv else None


def recorded_steps(measured: Sequence[tuple[Budget, float]]) -> tuple[ExplorationStep, ...]:
    """The history of an exploration that was made elsewhere.

    Args:
        measured: budgets and their MSTs, records/s, in the order they were measured.
    """
    return tuple(step_of(measured[: i + 1], "recorded") for i in range(len(measured)))


def step_of(
    measured: Sequence[tuple[Budget, float]], by: Suggester, slots_needed: SlotsInterval | None = None
) -> ExplorationStep:
    """The last measurement, and the errors of the candidates with it and all before it."""
    budget, mst = measured[-1]
    data = dataset_of(measured)
    loocv = {name: loocv_rmse(name, data) for name in REGRESSIONS} if len(data) > 1 else {}
    return ExplorationStep(budget=budget, mst=mst, loocv=loocv, suggested_by=by, slots_needed=slots_needed)


def dataset_of(measured: Sequence[tuple[Budget, float]]) -> Dataset:
    """Budgets and their MSTs, records/s, as a data set."""
    return Dataset(
        np.array([b.memory_mb for b, _ in measured]),
        np.array([b.task_slots for b, _ in measured]),
        np.array([m for _, m in measured]),
    )


class Axes:
    """The space as scikit-optimize sees it: slots and memory levels; one with a single value takes no part."""

    def __init__(self, space: SearchSpace, prior: Literal["uniform", "log-uniform"]) -> None:
        # Imported here because scikit-optimize takes seconds to import, and reading a finished exploration does without.
        from skopt.space import Integer

        self._space = space
        self._vary_slots = space.min_slots < space.max_slots
        self._vary_memory = len(space.memory_levels_mb) > 1
        self.dimensions = []
        if self._vary_slots:
            self.dimensions.append(Integer(space.min_slots, space.max_slots, prior=prior))
        if self._vary_memory:
            self.dimensions.append(Integer(0, len(space.memory_levels_mb) - 1))

    def point(self, budget: Budget) -> list[int]:
        level = self._space.memory_levels_mb.index(budget.memory_mb)
        return [budget.task_slots] * self._vary_slots + [level] * self._vary_memory

    def budget(self, point: Sequence[int]) -> Budget:
        coordinates = [int(c) for c in point]
        slots = coordinates.pop(0) if self._vary_slots else self._space.min_slots
        level = coordinates.pop(0) if self._vary_memory else 0
        return Budget(task_slots=slots, memory_mb=self._space.memory_levels_mb[level])
