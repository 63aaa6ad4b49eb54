"""Stage `scale`: the tasks of each operator, and the load of each task."""

from models.planning.budget import Sizing
from models.planning.parallelism import BIDS2, Scaling
from models.planning.parallelism import scale as scaled
from pipelines.planning.gathering import gather_capacity, gather_operators, operator_digests
from pipelines.run import PipelineRun
from pipelines.stages.size import SIZING_FILE
from pipelines.store.digests import digest

SCALING_FILE = "scaling.json"


def scale(run: PipelineRun) -> str:
    """Divide the sized budget among the operators; returns the URI of `scaling.json`."""
    key = run.key(SCALING_FILE)
    sizing = run.output(SIZING_FILE, Sizing)

    def make() -> Scaling:
        return scaled(gather_operators(run, gather_capacity(run)), sizing, run.request.rate, BIDS2)

    inputs = {"sizing": digest(sizing), "request": digest(run.request), **operator_digests(run)}
    scaling = run.workspace.once(key, inputs, Scaling, make)
    shared = f" of {len(scaling.vertices)} vertices in {scaling.slots} shared slots" if scaling.vertices else ""
    run.progress.say(f"scale: {scaling.dataflow.tasks} tasks{shared}, sources included")
    return run.workspace.uri(key)
