"""Scaling: the tasks of each operator for a sized budget, by BIDS2 or a scaling policy, and the load of each task."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal

from pydantic import Field

from models.capacity.bids2 import bids2
from models.capacity.observation import Budget
from models.dataflow import Dataflow
from models.job import Operator
from models.placement.shared.sharing import SharedDataflow
from models.plan.parts import Interval
from models.planning.budget import Sizing, predicted_mst
from models.planning.inputs import MeasuredOperators
from models.planning.physical.chains import equalised, with_stated_chains
from models.planning.physical.expansion import expand
from models.planning.physical.external import ExternalLimit, tightest_limit
from models.planning.physical.sharing import check_partitions, shared_partitions, uneven_key_groups
from models.planning.resources import managed_memory, stateful_per_slot
from models.scaling.policies import POLICIES, make_policy
from models.schema import SCHEMA_VERSION, Format, Name, NonNegative, Positive, PositiveInt
from models.vertices import JobVertex, slots_by_group
from models.wording import amount
from models.wording import tasks as task_count

BIDS2: Final = "bids2"
"""Divides the model's budget among the operators; a scaling policy decides the number of tasks itself."""


class Scaling(Format):
    """How many tasks each operator gets, with what memory, and the load of each task at the target rate."""

    schema_version: Literal[1] = SCHEMA_VERSION
    budget: Budget = Field(
        description="Task slots of the operators but the sources, as the capacity model counts them: without tasks that only "
        "chains add; and memory of a TaskManager."
    )
    parallelism: dict[str, PositiveInt] = Field(description="Tasks of each operator, sources included.")
    managed_memory_mb: dict[str, NonNegative] = Field(description="Of one task, MiB; 0 where no state is kept.")
    policy: Name = Field(description="What decided the parallelism: 'bids2', or a scaling policy.")
    records_in_per_s: dict[str, NonNegative] = Field(description="Into all tasks of an operator at the target rate.")
    true_rate_per_task: dict[str, Positive] = Field(description="Records/s of useful time of one task.")
    predicted_mst: Interval
    unlimited_mst: Interval | None = Field(
        None,
        exclude_if=lambda interval: interval is None,
        description="MST that is predicted without `limit`; null where the predicted one does not reach it.",
    )
    limit: ExternalLimit | None = Field(
        None,
        exclude_if=lambda limit: limit is None,
        description="The rate limit that is reached first; null without one.",
    )
    dataflow: Dataflow = Field(description="Loads of the tasks at the target rate.")
    operator_reasons: dict[str, str]
    reasons: tuple[str, ...]
    origin: str = Field(description="Where rates and unit costs come from, in words.")
    vertices: tuple[JobVertex, ...] = Field(
        (),
        exclude_if=lambda vertices: not vertices,
        description="All vertices of the job, where its file states any; else each task has a slot of its own.",
    )
    stateful_per_slot: PositiveInt = Field(
        1,
        exclude_if=lambda number: number == 1,
        description="How many times the memory of a measured slot one has, for the operators with state that share it.",
    )

    @property
    def slots(self) -> int:
        """Slots that the tasks take: one each or, where vertices share them, those of the widest of each group."""
        if not self.vertices:
            return self.dataflow.tasks
        return sum(slots_by_group(self.vertices, self.parallelism).values())

    @property
    def shared(self) -> SharedDataflow | None:
        """The vertices as the placement sees them; None where each task has a slot of its own."""
        return SharedDataflow.of(self.dataflow, self.vertices) if self.vertices else None


def scale(
    operators: MeasuredOperators,
    sizing: Sizing,
    rate: float,
    policy: str,
    settings: Mapping[str, object] | None = None,
) -> Scaling:
    """Decide the tasks of each operator.

    With `bids2` the budget is divided (StreamBed section 6, model usage). With a scaling policy the parallelism is its
    decision at the planned rate, but never fewer slots than the budget has, since policies assume linear scaling; if it
    asks for fewer, BIDS2 divides the budget. Operators that Flink chains get equal parallelism. The budget, for which the MST
    is predicted, is what the operators need alone, as they were measured; what chains add to it is not counted. Sources get the
    tasks that the planned rate needs; where these read less than the predicted MST, the reasons say so.

    Args:
        rate: target, records/s at the sources together; loads and busyness are those at this rate.
        settings: of the scaling policy, what differs from its defaults.

    Raises:
        InvalidInput: an unknown policy, or one that needs a metric that a measurement at another rate cannot give.
        Infeasible: operators that Flink chains cannot get equal parallelism, or a source has too few partitions.
    """
    check_partitions(operators.job, operators.busy_source_tasks(rate), rate)
    decided = _decide(operators, sizing, policy, settings)
    job, memory_mb = operators.job, sizing.budget.memory_mb
    budget = Budget(task_slots=sum(decided.tasks.values()), memory_mb=memory_mb)
    expected, limit = predicted_mst(sizing.model, budget), tightest_limit(job, operators.records_in_per_source_record)
    unlimited = expected.at_most(operators.most_read)
    predicted = unlimited if limit is None else unlimited.at_most(limit.source_rate)
    alone = {**operators.source_tasks(sizing.planned_rate), **decided.tasks}
    if job.vertices:
        parallelism, chained = with_stated_chains(operators, alone, sizing.planned_rate)
    else:
        parallelism, chained = equalised(job, alone)
    parallelism = {name: parallelism[name] for name in job.order}
    records_in = operators.records_in(rate)
    share_memory = stateful_per_slot(job)
    # Slots that were shared when they were measured had the memory of all of them.
    stateful, measured_with = (1, share_memory) if sizing.shared_slots else (share_memory, 1)
    per_slot_mb = stateful * memory_mb / sizing.slots_per_worker
    return Scaling(
        budget=budget,
        parallelism=parallelism,
        managed_memory_mb=managed_memory(job, memory_mb, sizing.slots_per_worker, measured_with),
        policy=decided.policy,
        records_in_per_s=records_in,
        true_rate_per_task=dict(operators.true_rate_per_task),
        predicted_mst=predicted,
        unlimited_mst=None if limit is None or limit.source_rate >= unlimited.value else unlimited,
        limit=limit,
        dataflow=expand(job, parallelism, records_in, operators.unit_costs, per_slot_mb),
        operator_reasons=_operator_reasons(operators, parallelism, sizing.planned_rate, decided.policy),
        reasons=(
            *decided.reasons,
            *chained,
            *shared_partitions(job, operators.busy_source_tasks(sizing.planned_rate), parallelism),
            *uneven_key_groups(job, parallelism),
            _evenness(operators, decided.tasks, expected),
            *_slower_sources(operators, parallelism, predicted.value),
        ),
        origin=operators.origin,
        vertices=job.deployed_vertices if job.vertices else (),
        stateful_per_slot=stateful,
    )


@dataclass(frozen=True)
class _Decided:
    """Tasks of the operators other than sources, and what decided them."""

    tasks: dict[str, int]
    policy: str
    reasons: tuple[str, ...]


def _decide(
    operators: MeasuredOperators, sizing: Sizing, policy: str, settings: Mapping[str, object] | None
) -> _Decided:
    if policy == BIDS2:
        return _Decided(_bids2(operators, sizing.budget), BIDS2, ())
    wanted = make_policy(policy, settings).decide(operators.policy_rates(sizing.planned_rate)).parallelism
    tasks = {o.name: wanted[o.name] for o in operators.job.scaled_operators}
    slots, title = sum(tasks.values()), POLICIES[policy].title
    if slots < sizing.budget.task_slots:
        reason = (
            f"{title} asks for {slots} task slots, but it assumes linear scaling, so BIDS2 divides the model's budget"
        )
        return _Decided(_bids2(operators, sizing.budget), BIDS2, (reason,))
    reason = f"{title} asks for {slots} task slots, no fewer than the model, so {title} decides"
    return _Decided(tasks, policy, (reason,))


def _bids2(operators: MeasuredOperators, budget: Budget) -> dict[str, int]:
    return bids2(operators.operator_rates, budget.task_slots, operators.job.max_parallelism).parallelism


def _evenness(operators: MeasuredOperators, tasks: Mapping[str, int], predicted: Interval) -> str:
    """By how much skew and bursts reduce the throughput of the tasks."""
    even = min(
        tasks[o.name] * o.true_rate_per_task / o.records_in_per_source_record
        for o in operators.operator_rates
        if o.records_in_per_source_record > 0
    )
    return (
        f"under even load, these tasks would take {amount(even)} records/s; the model expects {amount(predicted.value)} "
        f"({predicted.value / even:.0%}): the rest is lost to skew, bursts and contention"
    )


def _slower_sources(operators: MeasuredOperators, tasks: Mapping[str, int], mst: float) -> list[str]:
    """Sources whose tasks read less than their share of the predicted MST, and how many would do."""
    needed, remarks = operators.source_tasks(mst), []
    for name, busy in operators.busy_source_tasks(1.0).items():
        if tasks[name] < needed[name]:
            reads, it, its = ("reads", "it", "its") if tasks[name] == 1 else ("read", "them", "their")
            remarks.append(
                f"{task_count(tasks[name])} of {name} {reads} {its} share of at most {amount(tasks[name] / busy)} records/s, "
                f"though the operators after {it} are expected to take {mst:,.0f}; {needed[name]} would read that"
            )
    return remarks


def _of_partitions(source: Operator) -> str:
    """How many a source reads, where that is stated or was read from a broker."""
    if source.max_parallelism is None:
        return ""
    return f"; {source.max_parallelism} partitions{' of ' if source.topics else ''}{', '.join(source.topics)}"


def _operator_reasons(
    operators: MeasuredOperators, parallelism: Mapping[str, int], planned_rate: float, policy: str
) -> dict[str, str]:
    """One sentence for each operator; the tightest one is named."""
    capacity = {name: tasks * operators.true_rate_per_task[name] for name, tasks in parallelism.items()}
    records_in, job = operators.records_in(planned_rate), operators.job
    scaled = [o.name for o in job.scaled_operators]
    tightest = min((n for n in scaled if records_in[n] > 0), key=lambda name: capacity[name] / records_in[name])
    reasons = {}
    for name, tasks in parallelism.items():
        takes = f"one task takes {amount(operators.true_rate_per_task[name])} records/s"
        limited = tasks == job.most_tasks(name) and capacity[name] < records_in[name]
        headroom = "as many as it may have, which leaves less headroom" if limited else "with headroom"
        if name not in scaled:
            reasons[name] = f"{takes}; {headroom}{_of_partitions(job.operator(name))}"
        elif policy != BIDS2:
            reasons[name] = f"{POLICIES[policy].title}: {takes}; {headroom}"
        elif name == tightest:
            reasons[name] = f"the tightest: {takes}"
        elif tasks == 1:
            reasons[name] = f"enough: {takes}"
        else:
            reasons[name] = f"level with {tightest}: {takes}"
    return reasons
