"""What a plan for each rate of a schedule takes: task slots and price, by the registered model."""

from collections.abc import Sequence
from decimal import Decimal

from models.cluster import Cluster
from models.errors import Infeasible
from models.planning.workers.planned import PlannedWorkers
from pipelines.calendar.costs import SizedRate
from pipelines.planning.gathering import gather
from pipelines.planning.replan_policy import scaled_for_replan
from pipelines.progress import Quiet
from pipelines.run import PipelineRun
from pipelines.store.plans import PlanStore
from pipelines.store.workspace import Workspace


def sized_rates(workspace: Workspace, job: str, rates: Sequence[float]) -> dict[float, SizedRate]:
    """What the plan for each rate takes, as a replan would size and scale it.

    Raises as `gather`; so it does for a plan that was made from a running job, which no registered model sizes.
    """
    plan = PlanStore(workspace).current(job)
    run = PipelineRun.of_plan(workspace, plan, Quiet())
    known = gather(run)
    found = {}
    for rate in sorted(set(rates)):
        try:
            sizing, scaling, _ = scaled_for_replan(known, run, rate)
            workers = PlannedWorkers.of(run.cluster, sizing, scaling, rate)
            found[rate] = SizedRate(scaling.slots, _price(workers.cluster, scaling.slots))
        except Infeasible as error:
            found[rate] = SizedRate(None, None, str(error))
    return found


def _price(cluster: Cluster, slots: int) -> Decimal | None:
    """Of the fewest workers that have the slots, the largest first."""
    total, left = Decimal(0), slots
    for worker in sorted(cluster.workers, key=lambda one: -one.slots):
        if left <= 0:
            break
        if worker.price_per_hour is None:
            return None
        total, left = total + worker.price_per_hour, left - worker.slots
    return total
