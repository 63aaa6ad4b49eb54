"""Assembling: the results of sizing, scaling and placing become the content of a plan, with reasons in words."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pydantic import Field

from models.capacity.diagnosis.bound_by import BoundBy
from models.job import Job
from models.objectives.pricing import with_price
from models.placement import StablePlacement, Tuning
from models.placement.shared.results import SharedPlacement
from models.plan.content import Plan, PlanContent
from models.plan.parts import CostVector, Lineage, OperatorPlan, SlotsNeeded, VertexPlan
from models.plan.slots import SlotBundle
from models.planning.budget import Sizing, shortfall
from models.planning.parallelism import Scaling
from models.planning.workers.planned import PlannedWorkers
from models.schema import Format
from models.vertices import JobVertex, slots_by_group

PLACEMENT_POLICY = "caps"
MIXES = {
    "nested": "as in Flink by default, subtask i of each vertex of a group in slot i",
    "round-robin": "in turn, as with taskmanager.load-balance.mode: TASKS",
    "by-load": "so that heavy tasks are apart",
    "free": "as the search placed them",
}
"""How tasks share slots, in words."""
DIMENSION_NAMES = {"cpu": "CPU", "io": "state access", "net": "network"}


class TunedPlacement(Format):
    """A worker for each task, and the thresholds that the placement meets."""

    tuning: Tuning
    from_table: bool = Field(description="Whether the thresholds were tuned ahead of time.")
    shared: SharedPlacement | None = Field(
        None,
        exclude_if=lambda shared: shared is None,
        description="Which tasks share a slot, where slots are shared.",
    )


@dataclass(frozen=True)
class Decisions:
    """The decisions of the stages before `publish`."""

    sizing: Sizing
    scaling: Scaling
    placement: TunedPlacement
    workers: PlannedWorkers


def assemble(
    job: Job, rate: float, decisions: Decisions, lineage: Lineage, bound_by: BoundBy | None = None
) -> PlanContent:
    """The content of the plan that deploys the decisions, with where everything in it comes from.

    Args:
        rate: target, records/s at the sources together.
        bound_by: what bounds the job at the planned size.
    """
    sizing, scaling, placement, workers = decisions.sizing, decisions.scaling, decisions.placement, decisions.workers
    tuning, cluster = placement.tuning, workers.cluster
    short = shortfall(sizing.model, scaling.budget, rate)
    slots, cores = {w.slots for w in cluster.workers}, {w.cores for w in cluster.workers}
    content = PlanContent(
        job=job.name,
        target_rate=rate,
        source_rates={s.name: s.rate_share * rate for s in job.sources},
        headroom=sizing.margin.sources_factor,
        risk=sizing.margin.risk,
        slots_needed=SlotsNeeded(low=sizing.slots.low, high=sizing.slots.high, probability=sizing.slots.probability),
        task_slots=_task_slots(job, scaling),
        total_slots=scaling.slots,
        memory_mb=workers.memory_mb,
        slots_per_worker=slots.pop() if len(slots) == 1 else None,
        cores_per_worker=cores.pop() if len(cores) == 1 else None,
        operators=tuple(_operator(scaling, name, workers.managed_memory_mb) for name in job.order),
        vertices=tuple(_vertex(scaling, v, workers.managed_memory_mb) for v in scaling.vertices),
        slots={} if placement.shared is None else placement.shared.slots,
        placement=tuning.placement,
        cost=tuning.cost,
        thresholds=tuning.thresholds,
        placement_policy=PLACEMENT_POLICY,
        placement_status=tuning.status,
        predicted_mst=scaling.predicted_mst,
        bound_by=bound_by,
        objectives=sizing.objectives,
        reasons=(
            sizing.model.reason,
            sizing.reason,
            *(() if short is None else (short,)),
            *(() if sizing.would_help is None else (sizing.would_help.text,)),
            *scaling.reasons,
            *workers.reasons,
            scaling.origin + ("; the placement from the threshold table" if placement.from_table else ""),
            *_sharing_reasons(scaling, placement.shared),
            *_placement_reasons(tuning),
        ),
        lineage=lineage,
    )
    return _with_resources(content, workers)


def _task_slots(job: Job, scaling: Scaling) -> int:
    """Tasks of all operators but the sources; where slots are shared those that the capacity model counts."""
    if scaling.vertices:
        return scaling.budget.task_slots
    return sum(scaling.parallelism[o.name] for o in job.scaled_operators)


def with_moves(
    content: PlanContent,
    stable: StablePlacement,
    current: Plan,
    workers: PlannedWorkers,
    slots: Mapping[str, Sequence[SlotBundle]] | None = None,
) -> PlanContent:
    """The plan with its tasks on the workers where `current` runs them, as far as the new placement allows.

    Args:
        slots: of each worker, where slots are shared; moves are then those of slots.
    """
    changes: Mapping[str, object] = {
        "placement": stable.placement,
        "slots": {} if slots is None else dict(slots),
        "cost": stable.cost,
        "thresholds": stable.allowed,
        "placement_status": content.placement_status if stable.cost == content.cost else "feasible",
        "reasons": (*content.reasons, *_move_reasons(stable, current, "tasks" if slots is None else "slots")),
        "resources": None,
    }
    return _with_resources(PlanContent.model_validate({**content.model_dump(), **changes}), workers)


def _with_resources(content: PlanContent, workers: PlannedWorkers) -> PlanContent:
    """The plan with the TaskManagers that its placement uses."""
    resources = workers.resources(content)
    priced = content.objectives and with_price(content.objectives, resources)
    return content.model_copy(update={"resources": resources, "objectives": priced})


def _operator(scaling: Scaling, name: str, most_managed_mb: float) -> OperatorPlan:
    tasks, records_in = scaling.parallelism[name], scaling.records_in_per_s[name]
    return OperatorPlan(
        name=name,
        parallelism=tasks,
        managed_memory_mb=min(scaling.managed_memory_mb[name], round(most_managed_mb, 1)),
        records_in_per_s=records_in,
        predicted_busyness=min(1.0, records_in / (tasks * scaling.true_rate_per_task[name])),
        reason=scaling.operator_reasons[name],
    )


def _vertex(scaling: Scaling, vertex: JobVertex, most_managed_mb: float) -> VertexPlan:
    chained = [_operator(scaling, name, most_managed_mb) for name in vertex.operators]
    return VertexPlan(
        operators=vertex.operators,
        slot_sharing_group=vertex.slot_sharing_group,
        parallelism=chained[0].parallelism,
        managed_memory_mb=round(sum(o.managed_memory_mb for o in chained), 1),
        predicted_busyness=min(1.0, sum(o.predicted_busyness for o in chained)),
    )


def _sharing_reasons(scaling: Scaling, shared: SharedPlacement | None) -> tuple[str, ...]:
    """Why as many slots, with what memory, and how far it is proved which tasks share them."""
    if shared is None:
        return ()
    tasks = sum(scaling.parallelism[v.operators[0]] for v in scaling.vertices)
    by_group = slots_by_group(scaling.vertices, scaling.parallelism)
    groups = ", ".join(f"{group} {slots}" for group, slots in by_group.items())
    reasons = [f"{tasks} tasks of {len(scaling.vertices)} vertices take {scaling.slots} slots ({groups})"]
    if scaling.stateful_per_slot > 1:
        reasons.append(
            f"{scaling.stateful_per_slot} operators with state may share a slot, so a slot has {scaling.stateful_per_slot} "
            "times the memory of one that was measured with a single task"
        )
    proof = (
        "no other way to share slots costs less"
        if shared.best_of_every_mix
        else "another way to share slots may cost less"
    )
    return (*reasons, f"tasks share slots {MIXES.get(shared.mix, MIXES['by-load'])}; {proof}")


def _placement_reasons(tuning: Tuning) -> tuple[str, ...]:
    single, joint = tuning.single, tuning.thresholds
    return (
        f"alone, CPU, state access and network could be balanced to {single.cpu:.4f}, {single.io:.4f} and "
        f"{single.net:.4f} (0 is even, 1 the worst); together to {joint.cpu:.4f}, {joint.io:.4f} and {joint.net:.4f}",
        *(
            f"{DIMENSION_NAMES[d]} is not limited (threshold 1): no placement loads a worker by more than {worst:.1%} of "
            "its capacity there, so it cannot become a bottleneck"
            for d, worst in tuning.left_out.items()
        ),
    )


def _move_reasons(stable: StablePlacement, current: Plan, what: str) -> tuple[str, str]:
    proof = "no plan within these costs moves fewer" if stable.status == "optimal" else "fewer may be possible"
    moves = (
        f"{stable.moves} {what} start where version {current.version} does not run them ({proof}; {stable.least_moves} "
        f"at least): costs may reach the least thresholds and {stable.tolerance:.0%} more, and the plan of the least "
        f"costs would move {stable.best_moves}"
    )
    if stable.stay_cost is None:
        return (
            moves,
            f"the running {what} could not all stay: they no longer fit the slots or the memory of their workers",
        )
    return moves, (
        f"leaving everything where it runs would move {stable.stay_moves} and cost {_in_words(stable.stay_cost)}; "
        f"allowed are {_in_words(stable.allowed)}"
    )


def _in_words(cost: CostVector) -> str:
    return f"CPU {cost.cpu:.4f}, state access {cost.io:.4f} and network {cost.net:.4f}"
