"""Assembling: the results of sizing, scaling and placing become the content of a plan, with reasons in words."""

from collections.abc import Mapping
from dataclasses import dataclass

from pydantic import Field

from models.capacity.diagnosis.bound_by import BoundBy
from models.capacity.sizing import DEFAULT_HEADROOM
from models.job import Job
from models.placement import StablePlacement, Tuning
from models.plan import CostVector, Lineage, OperatorPlan, Plan, PlanContent, SlotsNeeded
from models.planning.budget import Sizing, shortfall
from models.planning.parallelism import Scaling
from models.planning.workers import PlannedWorkers
from models.schema import Format

PLACEMENT_POLICY = "caps"
DIMENSION_NAMES = {"cpu": "CPU", "io": "state access", "net": "network"}


class TunedPlacement(Format):
    """A worker for each task, and the thresholds that the placement meets."""

    tuning: Tuning
    from_table: bool = Field(description="Whether the thresholds were tuned ahead of time.")


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
        headroom=sizing.margin.headroom or DEFAULT_HEADROOM,
        risk=sizing.margin.risk,
        slots_needed=SlotsNeeded(low=sizing.slots.low, high=sizing.slots.high, probability=sizing.slots.probability),
        task_slots=scaling.budget.task_slots,
        total_slots=scaling.dataflow.tasks,
        memory_mb=workers.memory_mb,
        slots_per_worker=slots.pop() if len(slots) == 1 else None,
        cores_per_worker=cores.pop() if len(cores) == 1 else None,
        operators=tuple(_operator(scaling, name, workers.managed_memory_mb) for name in job.order),
        placement=tuning.placement,
        cost=tuning.cost,
        thresholds=tuning.thresholds,
        placement_policy=PLACEMENT_POLICY,
        placement_status=tuning.status,
        predicted_mst=scaling.predicted_mst,
        bound_by=bound_by,
        reasons=(
            sizing.model.reason,
            sizing.reason,
            *(() if short is None else (short,)),
            *(() if sizing.would_help is None else (sizing.would_help.text,)),
            *scaling.reasons,
            *workers.reasons,
            scaling.origin + ("; the placement from the threshold table" if placement.from_table else ""),
            *_placement_reasons(tuning),
        ),
        lineage=lineage,
    )
    return _with_resources(content, workers)


def with_moves(content: PlanContent, stable: StablePlacement, current: Plan, workers: PlannedWorkers) -> PlanContent:
    """The plan with its tasks on the workers where `current` runs them, as far as the new placement allows."""
    changes: Mapping[str, object] = {
        "placement": stable.placement,
        "cost": stable.cost,
        "thresholds": stable.allowed,
        "placement_status": content.placement_status if stable.cost == content.cost else "feasible",
        "reasons": (*content.reasons, *_move_reasons(stable, current)),
        "resources": None,
    }
    return _with_resources(PlanContent.model_validate({**content.model_dump(), **changes}), workers)


def _with_resources(content: PlanContent, workers: PlannedWorkers) -> PlanContent:
    """The plan with the TaskManagers that its placement uses."""
    return content.model_copy(update={"resources": workers.resources(content)})


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


def _move_reasons(stable: StablePlacement, current: Plan) -> tuple[str, str]:
    proof = "no plan within these costs moves fewer" if stable.status == "optimal" else "fewer may be possible"
    moves = (
        f"{stable.moves} tasks start where version {current.version} does not run them ({proof}; {stable.least_moves} "
        f"at least): costs may reach the least thresholds and {stable.tolerance:.0%} more, and the plan of the least "
        f"costs would move {stable.best_moves}"
    )
    if stable.stay_cost is None:
        return (
            moves,
            "the running tasks could not all stay: they no longer fit the slots or the memory of their workers",
        )
    return moves, (
        f"leaving everything where it runs would move {stable.stay_moves} and cost {_in_words(stable.stay_cost)}; "
        f"allowed are {_in_words(stable.allowed)}"
    )


def _in_words(cost: CostVector) -> str:
    return f"CPU {cost.cpu:.4f}, state access {cost.io:.4f} and network {cost.net:.4f}"
