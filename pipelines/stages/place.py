"""Stage `place`: the workers where the cluster offers kinds, the least thresholds that a placement meets, and a worker for
each task (CAPSys section 5.2).
"""

from models.placement import Tuning
from models.planning.assembling import TunedPlacement
from models.planning.budget import Sizing
from models.planning.parallelism import Scaling
from models.planning.workers.planned import PlannedWorkers
from models.wording import tasks
from pipelines.planning.placing import tuned_placement
from pipelines.run import PipelineRun
from pipelines.stages.scale import SCALING_FILE
from pipelines.stages.size import SIZING_FILE
from pipelines.store.digests import digest

PLACEMENT_FILE = "placement.json"


def place(run: PipelineRun) -> str:
    """Place the tasks; returns the URI of `placement.json`."""
    key = run.key(PLACEMENT_FILE)
    scaling = run.output(SCALING_FILE, Scaling)
    inputs = {"scaling": digest(scaling), "cluster": digest(run.cluster), "request": digest(run.request)}
    planned = PlannedWorkers.of(run.cluster, run.output(SIZING_FILE, Sizing), scaling, run.request.rate)
    placed = run.workspace.once(
        key, inputs, TunedPlacement, lambda: tuned_placement(scaling, run.request.rate, planned.cluster)
    )
    tuning = placed.tuning
    workers = len(tuning.placement)
    run.progress.say(
        f"place: {tasks(scaling.dataflow.tasks)} on {workers} worker{'s' * (workers > 1)}; thresholds {_in_words(tuning)} "
        f"({tuning.status})"
    )
    return run.workspace.uri(key)


def _in_words(tuning: Tuning) -> str:
    return ", ".join(
        f"{name} not limited" if name in tuning.left_out else f"{name} {least:.4f}"
        for name, least in tuning.thresholds.model_dump().items()
    )
