"""From a rate to tasks: budget from the capacity model, parallelism from BIDS2 (or DS2 when replanning), and loads."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from pydantic import Field

from models.capacity.bids2 import bids2
from models.capacity.observation import Budget
from models.capacity.surrogates import prediction_band
from models.capacity.target import choose_budget
from models.cluster import Cluster
from models.dataflow import Dataflow
from models.errors import Infeasible
from models.expansion import expand
from models.memory import managed_memory_per_slot_mb
from models.plan import Interval
from models.scaling.policies import POLICIES, make_policy
from models.schema import SCHEMA_VERSION, Format, Name, NonNegative, Positive, PositiveInt
from pipelines.knowledge import Knowledge

BIDS2: Final = "bids2"
"""Gives out the model's budget; the scaling policies say themselves how many tasks they want."""
PROBABILITY: Final = 0.95
"""Of the interval around the predicted MST."""


class Scaling(Format):
    """How many tasks each operator gets at a rate, with what memory, and the load of each task."""

    schema_version: Literal[1] = SCHEMA_VERSION
    target_rate: Positive
    headroom: float = Field(ge=1.0)
    budget: Budget
    task_slots_by_memory_mb: dict[float, PositiveInt] = Field(description="What each memory size would have needed.")
    parallelism: dict[str, PositiveInt] = Field(description="Tasks of each operator, sources included.")
    managed_memory_mb: dict[str, NonNegative] = Field(description="Of one task, MiB; 0 where no state is kept.")
    policy: Name = Field(description="What decided the parallelism: 'bids2', or a scaling policy.")
    records_in_per_s: dict[str, NonNegative] = Field(description="Into all tasks of an operator at the target rate.")
    true_rate_per_task: dict[str, Positive] = Field(description="Records/s of useful time of one task.")
    predicted_mst: Interval
    dataflow: Dataflow = Field(description="Loads of the tasks at the target rate.")
    operator_reasons: dict[str, str]
    reasons: tuple[str, ...]


def scale(
    knowledge: Knowledge,
    cluster: Cluster,
    rate: float,
    headroom: float,
    memory_mb: float | None,
    policy: str,
    settings: Mapping[str, object] | None = None,
) -> Scaling:
    """Decide parallelism and memory for a rate.

    With `bids2` the budget of the model is given out (StreamBed section 6, model usage). With a scaling policy the
    parallelism is what it decides at `headroom` x `rate`, but never fewer slots than the model asks for, since policies
    assume linear scaling; where the model asks for more, BIDS2 gives out its budget.

    Args:
        settings: of the scaling policy, what differs from its defaults.

    Raises:
        InvalidInput: no such policy, or it decides by a metric that a measurement at another rate cannot tell.
        Infeasible: no memory size reaches the rate, or none fits the cluster.
    """
    levels = knowledge.memory_levels_mb if memory_mb is None else [memory_mb]
    fitting = _fitting(levels, knowledge.slots_per_worker, cluster)
    fewest = len(knowledge.job.scaled_operators)
    choice = choose_budget(knowledge.surrogate, knowledge.dataset, fitting, rate, headroom, fewest)
    decided = _decide(knowledge, choice.budget, headroom * rate, policy, settings)
    predicted = _predicted_mst(knowledge, decided.budget)
    parallelism = {**knowledge.source_tasks(headroom * rate), **decided.tasks}
    records_in = {name: ratio * rate for name, ratio in knowledge.records_in_per_source_record.items()}
    memory_per_task_mb = decided.budget.memory_mb / knowledge.slots_per_worker
    return Scaling(
        target_rate=rate,
        headroom=headroom,
        budget=decided.budget,
        task_slots_by_memory_mb=choice.task_slots_by_memory_mb,
        parallelism={name: parallelism[name] for name in knowledge.job.order},
        managed_memory_mb=_managed_memory(knowledge, decided.budget.memory_mb),
        policy=decided.policy,
        records_in_per_s=records_in,
        true_rate_per_task=dict(knowledge.true_rate_per_task),
        predicted_mst=predicted,
        dataflow=expand(knowledge.job, parallelism, records_in, knowledge.unit_costs, memory_per_task_mb),
        operator_reasons=_operator_reasons(knowledge, parallelism, records_in, decided.policy),
        reasons=(
            knowledge.model_reason,
            choice.reason,
            *decided.reasons,
            _evenness(knowledge, decided.tasks, predicted),
        ),
    )


@dataclass(frozen=True)
class _Decided:
    """Tasks of the operators other than sources, and what decided them."""

    tasks: dict[str, int]
    budget: Budget
    policy: str
    reasons: tuple[str, ...]


def _decide(
    knowledge: Knowledge, budget: Budget, rate: float, policy: str, settings: Mapping[str, object] | None
) -> _Decided:
    if policy == BIDS2:
        return _Decided(_bids2(knowledge, budget), budget, BIDS2, ())
    title = POLICIES[policy].title if policy in POLICIES else policy
    wanted = make_policy(policy, settings).decide(knowledge.policy_rates(rate)).parallelism
    tasks = {o.name: wanted[o.name] for o in knowledge.job.scaled_operators}
    slots = sum(tasks.values())
    if slots < budget.task_slots:
        reason = (
            f"{title} asks for {slots} task slots, but it assumes linear scaling, so BIDS2 gives out the model's budget"
        )
        return _Decided(_bids2(knowledge, budget), budget, BIDS2, (reason,))
    reason = f"{title} asks for {slots} task slots, no fewer than the model, so {title} decides"
    return _Decided(tasks, Budget(task_slots=slots, memory_mb=budget.memory_mb), policy, (reason,))


def _bids2(knowledge: Knowledge, budget: Budget) -> dict[str, int]:
    return bids2(knowledge.operator_rates, budget.task_slots, knowledge.job.max_parallelism).parallelism


def _evenness(knowledge: Knowledge, tasks: Mapping[str, int], predicted: Interval) -> str:
    """How far skew and bursts keep the tasks from what they could do together."""
    even = min(
        tasks[o.name] * o.true_rate_per_task / o.records_in_per_source_record
        for o in knowledge.operator_rates
        if o.records_in_per_source_record > 0
    )
    return (
        f"if load were even, these tasks would take {even:,.0f} records/s; the model expects {predicted.value:,.0f} "
        f"({predicted.value / even:.0%}): the rest is what skew, bursts and contention cost"
    )


def _predicted_mst(knowledge: Knowledge, budget: Budget) -> Interval:
    """The model's prediction, with the width of the interval that the present observations give its kind of model."""
    value = float(knowledge.surrogate.predict(budget.memory_mb, budget.task_slots))
    _, low, high = prediction_band(
        knowledge.surrogate.name, knowledge.dataset, budget.memory_mb, budget.task_slots, PROBABILITY
    )
    half = float(high - low) / 2
    return Interval(value=max(0.0, value), low=max(0.0, value - half), high=value + half, probability=PROBABILITY)


def _fitting(levels_mb: Sequence[float], slots_per_worker: int, cluster: Cluster) -> list[float]:
    """The memory sizes whose share for each slot the cluster's workers have.

    Raises:
        Infeasible: none fits.
    """
    per_slot = [w.memory_mb / w.slots for w in cluster.workers if w.memory_mb is not None]
    most = min(per_slot, default=float("inf"))
    fitting = [level for level in levels_mb if level / slots_per_worker <= most]
    if not fitting:
        raise Infeasible(
            f"a slot needs {min(levels_mb) / slots_per_worker:,.0f} MiB at least, the least that was measured, but the "
            f"workers of cluster {cluster.name!r} have {most:,.0f} MiB for each; use a cluster with more memory per slot"
        )
    return fitting


def _managed_memory(knowledge: Knowledge, memory_mb: float) -> dict[str, float]:
    share = managed_memory_per_slot_mb(memory_mb, knowledge.slots_per_worker)
    return {o.name: round(share, 1) if o.state is not None else 0.0 for o in knowledge.job.operators}


def _operator_reasons(
    knowledge: Knowledge, parallelism: Mapping[str, int], records_in: Mapping[str, float], policy: str
) -> dict[str, str]:
    """One sentence for each operator; the tightest one is named."""
    capacity = {name: tasks * knowledge.true_rate_per_task[name] for name, tasks in parallelism.items()}
    scaled = [o.name for o in knowledge.job.scaled_operators]
    tightest = min((n for n in scaled if records_in[n] > 0), key=lambda name: capacity[name] / records_in[name])
    reasons = {}
    for name, tasks in parallelism.items():
        takes = f"one task takes {knowledge.true_rate_per_task[name]:,.0f} records/s"
        if name not in scaled:
            reasons[name] = f"{takes}; with headroom"
        elif policy != BIDS2:
            reasons[name] = f"{POLICIES[policy].title}: {takes}; with headroom"
        elif name == tightest:
            reasons[name] = f"the tightest: {takes}"
        elif tasks == 1:
            reasons[name] = f"enough: {takes}"
        else:
            reasons[name] = f"level with {tightest}: {takes}"
    return reasons
