"""Sizing a run's job for a rate and the objectives of its request, with what the run has found out."""

import math
from typing import Final

import numpy as np

from models.capacity.observation import Budget
from models.capacity.sizing import Margin
from models.cluster import Cluster
from models.errors import SluiceError
from models.objectives.objectives import Objectives
from models.planning.budget import Sizing, predicted_mst, size
from models.planning.inputs import PlanningInputs
from models.planning.meeting import Foreseen, meet
from models.planning.parallelism import BIDS2, scale
from models.planning.physical.external import check_limit, tightest_limit
from models.wording import amount
from pipelines.inputs.job_files import operations_of
from pipelines.run import PipelineRun
from pipelines.stages.twin import MOST_SLOTS, twin_of, twin_to_serve
from pipelines.twin.serving import ServingTwin, foresee

_FEWEST_SOURCES: Final = 1


def sized(known: PlanningInputs, run: PipelineRun, rate: float) -> Sizing:
    """The memory and task slots for a rate, and for the objectives of the run's request.

    Args:
        rate: target, records/s at the sources together.

    Raises:
        InvalidInput: the cluster's TaskManagers have less memory than was asked for.
        Infeasible: the rate or an objective is out of reach, or beyond a rate limit of the job's file.
        SluiceError: a lag objective is stated, but the job has no twin that predicts it.
    """
    request, asked = run.request, run.request.objectives
    margin = Margin.asked(request.risk, request.headroom, known.model.capacity, request.catch_up)
    limit = tightest_limit(run.job, known.operators.records_in_per_source_record)
    check_limit(limit, rate, margin.catch_up)
    sizing = size(known.capacity, known.model, run.cluster, rate, margin, request.memory_mb)
    if asked is None:
        return sizing
    plain, memory_mb = margin.model_copy(update={"catch_up": 1.0}), sizing.budget.memory_mb
    alone = size(known.capacity, known.model, run.cluster, rate, plain, memory_mb).budget.task_slots
    twin, most_read = _Twin.of(known, run, sizing, rate, asked), known.operators.most_read
    most_rate = most_read if limit is None else min(most_read, limit.source_rate)
    return meet(sizing, asked, rate, alone, _most_slots(run), twin, most_rate)


def highest_rate(run: PipelineRun, rate: float) -> float:
    """Records/s up to which a plan for a rate stays in force: the upper end of its rate band, where the rate is followed."""
    band = operations_of(run.job).replan
    return rate if band is None else max((1 + band.upwards) * rate, rate + band.minimum_change)


def _most_slots(run: PipelineRun) -> int:
    """Task slots that can be had, with one slot at least left to each source."""
    if not isinstance(run.cluster, Cluster):
        return MOST_SLOTS
    return max(run.cluster.slots - _FEWEST_SOURCES * len(run.job.sources), 1)


class _Twin:
    """Asks the run's twin for sizes, each once."""

    def __init__(self, known: PlanningInputs, run: PipelineRun, sizing: Sizing, rate: float, asked: Objectives) -> None:
        self._known, self._run, self._sizing, self._rate, self._asked = known, run, sizing, rate, asked
        self._found: dict[int, Foreseen] = {}

    @classmethod
    def of(
        cls, known: PlanningInputs, run: PipelineRun, sizing: Sizing, rate: float, asked: Objectives
    ) -> "_Twin | None":
        """None where no objective needs it, or the run has none and only its recovery would be checked.

        Raises:
            SluiceError: there is no twin, and a lag objective needs one.
        """
        record = twin_of(run)
        if asked.lag is None and asked.recovery is None:
            return None
        if record is not None and record.curve is not None:
            return cls(known, run, sizing, rate, asked)
        if asked.lag is None:
            return None
        reason = "the request leaves it out" if record is None else record.reason
        raise SluiceError(
            f"'{asked.lag.text}' is predicted by the job's twin alone, and {reason}; leave the lag objective out, or measure "
            "more, so that there is a twin"
        )

    def __call__(self, task_slots: int) -> Foreseen:
        if task_slots not in self._found:
            self._found[task_slots] = self._foreseen(task_slots)
            self._run.progress.say(f"size: {_in_words(task_slots, self._found[task_slots])}")
        return self._found[task_slots]

    def _foreseen(self, task_slots: int) -> Foreseen:
        budget = Budget(task_slots=task_slots, memory_mb=self._sizing.budget.memory_mb)
        sizing = self._sizing.model_copy(update={"budget": budget})
        tasks = scale(self._known.operators, sizing, self._rate, BIDS2).parallelism
        served = ServingTwin(twin_to_serve(self._run), tasks, budget.memory_mb)
        rates = [self._optimism(budget) * r for r in (highest_rate(self._run, self._rate), self._rate)]
        lag = foresee(served, rates[0], lag=self._asked.lag)
        recovery = foresee(served, rates[1], recovery=self._asked.recovery)
        return Foreseen(lag.lag_s, recovery.recovery_s, rates[0] if self._asked.lag else rates[1])

    def _optimism(self, budget: Budget) -> float:
        """By how much the twin takes more than the capacity model expects, which the measurements have corrected; at least 1.

        At a rate that is so many times higher the twin is as busy as the job is expected to be.
        """
        record = twin_of(self._run)
        assert record is not None and record.curve is not None, "asked only where there is a twin"
        alone = math.exp(float(record.curve.log_mst(budget.memory_mb, np.array([float(budget.task_slots)]))[0]))
        return max(alone / predicted_mst(self._sizing.model, budget).value, 1.0)


def _in_words(task_slots: int, seen: Foreseen) -> str:
    lag = "" if seen.lag_s is None else f", lag {seen.lag_s:,.1f} s"
    never = seen.recovery_s is not None and math.isinf(seen.recovery_s)
    recovery = "" if seen.recovery_s is None else ", no recovery in twice the time" if never else ""
    if seen.recovery_s is not None and not never:
        recovery = f", recovery in {seen.recovery_s:,.0f} s"
    return f"the twin predicts with {task_slots} task slots at {amount(seen.rate)} records/s{lag}{recovery}"
