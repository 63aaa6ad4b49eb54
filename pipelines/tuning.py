"""Stage `tune`: what the target rate needs, and the least thresholds its placement can meet (CAPSys section 5.2)."""

import time
from typing import Final

from pydantic import Field

from models.cluster import Cluster
from models.errors import Infeasible
from models.placement import Tuning
from models.placement import tune as tune_thresholds
from models.schema import Format
from pipelines.digests import digest
from pipelines.exploration_record import EXPLORATION_FILE, ExplorationRecord
from pipelines.knowledge import Knowledge, known
from pipelines.planning_model import planning_model
from pipelines.run import PipelineRun
from pipelines.scaling import Scaling, scale
from pipelines.threshold_store import stored_tuning
from pipelines.workspace import Workspace

FROM_TABLE: Final = "the threshold table"


class TunedScaling(Format):
    """A scaling with the thresholds for placing it."""

    scaling: Scaling
    model: str = Field(description="Surrogate that the budget comes from.")
    model_uri: str
    origin: str = Field(description="Where rates and unit costs come from, in words.")
    tuning: Tuning = Field(description="The thresholds, and the placement that meets them.")


def tune(run: PipelineRun) -> str:
    """Scale to the request's target and tune the thresholds for it; returns the URI of `thresholds.json`."""
    key = run.key("thresholds.json")
    inputs = {
        "exploration": digest(run.output(EXPLORATION_FILE, ExplorationRecord)),
        "model": planning_model(run).uri,
        "request": digest(run.request),
        "cluster": digest(run.cluster),
    }
    tuned = run.workspace.once(key, inputs, TunedScaling, lambda: _tune(run))
    slots = tuned.scaling.budget.task_slots
    run.progress.say(f"tune: {slots} task slots; thresholds {_shown(tuned.tuning)} ({tuned.tuning.status})")
    return run.workspace.uri(key)


def _shown(tuning: Tuning) -> str:
    """The thresholds in words."""
    return ", ".join(
        f"{name} not limited" if name in tuning.left_out else f"{name} {least:.4f}"
        for name, least in tuning.thresholds.model_dump().items()
    )


def _tune(run: PipelineRun) -> TunedScaling:
    knowledge, request = known(run), run.request
    try:
        scaling = scale(knowledge, run.cluster, request.rate, request.headroom, request.memory_mb, "bids2")
        return tuned_scaling(knowledge, scaling, run.cluster)
    except Infeasible as error:
        if request.measurements is not None:
            raise
        raise Infeasible(
            f"{error}; what was measured is kept: ask again with --run {run.run_id} and another rate, and nothing is "
            "measured again"
        ) from error


def tuned_scaling(
    knowledge: Knowledge, scaling: Scaling, cluster: Cluster, workspace: Workspace | None = None
) -> TunedScaling:
    """The thresholds for the tasks of a scaling: from the job's threshold table, else by tuning them now.

    Args:
        workspace: where the table is; without one nothing is looked up.

    Raises:
        Infeasible: the cluster has fewer slots than there are tasks.
    """
    if scaling.dataflow.tasks > cluster.slots:
        raise Infeasible(
            f"{scaling.target_rate:,.0f} records/s need {scaling.dataflow.tasks} slots, sources included, but cluster "
            f"{cluster.name!r} has {cluster.slots}; use a larger cluster, or a lower rate"
        )
    stored = None if workspace is None else stored_tuning(workspace, knowledge, scaling, cluster)
    return TunedScaling(
        scaling=scaling,
        model=knowledge.surrogate.name,
        model_uri=knowledge.model_uri,
        origin=knowledge.origin if stored is None else f"{knowledge.origin}; the placement from {FROM_TABLE}",
        tuning=stored or tune_thresholds(scaling.dataflow, cluster, clock=time.monotonic),
    )
