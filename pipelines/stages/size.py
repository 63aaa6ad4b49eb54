"""Stage `size`: the task slots and memory that the target rate needs, and the model behind them.

The model's version is bound here, once, and carried in this stage's output: no later stage selects a model.
"""

from models.capacity.exploration.question import HelpfulMeasurement, SizingQuestion, would_help
from models.planning.budget import Sizing
from models.planning.inputs import PlanningInputs
from pipelines.measuring.exploration_record import EXPLORATION_FILE, ExplorationRecord
from pipelines.planning.gathering import gather_capacity, gather_model, gather_operators, operator_digests, rate_limits
from pipelines.planning.sizing import highest_rate, sized
from pipelines.registry.selection_record import SELECTION_FILE, SelectionRecord
from pipelines.run import PipelineRun
from pipelines.stages.twin import TWIN_FILE, TwinRecord, twin_of
from pipelines.store.digests import digest

SIZING_FILE = "sizing.json"


def size(run: PipelineRun) -> str:
    """Bind the model and size the job for the request's target rate; returns the URI of `sizing.json`."""
    key, request, model = run.key(SIZING_FILE), run.request, gather_model(run)
    inputs = {
        "exploration": digest(run.output(EXPLORATION_FILE, ExplorationRecord)),
        "selection": digest(run.output(SELECTION_FILE, SelectionRecord)),
        "model": model.uri,
        "request": digest(request),
        "cluster": digest(run.cluster),
    }
    if run.job.vertices:
        inputs["vertices"] = digest(run.job.vertices)
    if limits := rate_limits(run.job):
        inputs["rate limits"] = digest(limits)
    if model.sustained:
        inputs["production"] = digest(model.sustained)
    if request.objectives is not None:
        inputs |= _objective_inputs(run)

    def make() -> Sizing:
        capacity = gather_capacity(run)
        sizing = sized(PlanningInputs(capacity, gather_operators(run, capacity), model), run, request.rate)
        return sizing.model_copy(update={"would_help": _helpful(run, sizing)})

    sizing = run.workspace.once(key, inputs, Sizing, make)
    run.progress.say(
        f"size: {sizing.slots.text.replace('slots', 'task slots')} with {sizing.budget.memory_mb:,.0f} MiB; "
        f"{sizing.model.reason}"
    )
    if sizing.objectives is not None:
        run.progress.say(f"size: {sizing.objectives.title}")
    if sizing.would_help is not None:
        run.progress.say(f"size: {sizing.would_help.text}")
    return run.workspace.uri(key)


def _objective_inputs(run: PipelineRun) -> dict[str, str]:
    """Digests of what lag and recovery are predicted from, by name."""
    digests = {"highest rate": digest([highest_rate(run, run.request.rate)]), **operator_digests(run)}
    if run.request.wants_twin:
        digests["twin"] = digest(run.output(TWIN_FILE, TwinRecord))
    return digests


def _helpful(run: PipelineRun, sizing: Sizing) -> HelpfulMeasurement | None:
    """The measurement that would narrow the interval most; none is looked for where the request names a law."""
    if run.request.model != "auto":
        return None
    record = twin_of(run)
    question = SizingQuestion(
        rate=run.request.rate,
        margin=sizing.margin,
        memory_levels_mb=(sizing.budget.memory_mb,),
        fewest_slots=len(run.job.scaled_operators),
        precision=run.request.precision,
        twin=None if record is None else record.curve,
    )
    return would_help(question, gather_capacity(run).dataset)
