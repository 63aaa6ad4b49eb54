"""Stage `size`: the task slots and memory that the target rate needs, and the model behind them.

The model's version is bound here, once, and carried in this stage's output: no later stage selects a model.
"""

from models.capacity.sizing import Margin
from models.planning.budget import Sizing
from models.planning.budget import size as sized
from pipelines.measuring.exploration_record import EXPLORATION_FILE, ExplorationRecord
from pipelines.planning.gathering import gather_capacity
from pipelines.registry.planning_model import planning_model
from pipelines.registry.selection_record import SELECTION_FILE, SelectionRecord
from pipelines.run import PipelineRun
from pipelines.store.digests import digest

SIZING_FILE = "sizing.json"


def size(run: PipelineRun) -> str:
    """Bind the model and size the job for the request's target rate; returns the URI of `sizing.json`."""
    key, request, model = run.key(SIZING_FILE), run.request, planning_model(run)
    inputs = {
        "exploration": digest(run.output(EXPLORATION_FILE, ExplorationRecord)),
        "selection": digest(run.output(SELECTION_FILE, SelectionRecord)),
        "model": model.uri,
        "request": digest(request),
        "cluster": digest(run.cluster),
    }
    margin = Margin.asked(request.risk, request.headroom, model.capacity)
    sizing = run.workspace.once(
        key,
        inputs,
        Sizing,
        lambda: sized(gather_capacity(run), model, run.cluster, request.rate, margin, request.memory_mb),
    )
    run.progress.say(
        f"size: {sizing.budget.task_slots} task slots with {sizing.budget.memory_mb:,.0f} MiB; {sizing.model.reason}"
    )
    return run.workspace.uri(key)
