"""Stage `select`: the capacity model to plan with, all growth laws weighed by LOOCV, logged to MLflow and registered.

The version it registers is the job's challenger; `review` decides whether it
becomes the champion.
"""

from models.capacity.growth.dataset import Dataset
from models.capacity.selection import select as choose
from pipelines.measuring.exploration_record import EXPLORATION_FILE, ExplorationRecord
from pipelines.registry.selection_log import LoggedSelection, log_selection
from pipelines.registry.selection_record import SELECTION_FILE, SelectionRecord
from pipelines.registry.selection_runs import finished_selection, replace_unfinished
from pipelines.registry.tracking import mlflow_errors, open_tracking, without_password
from pipelines.run import PipelineRun
from pipelines.stages.check import report_digests, verified_samples
from pipelines.stages.twin import twin_of
from pipelines.store.digests import digest


def select(run: PipelineRun) -> str:
    """Fit the capacity model to the run's observations; returns the URI of `selection.json`.

    A run that was killed here is logged again, and its unfinished half is marked as superseded; a finished one is found
    by its tags, and not logged twice.

    Raises:
        SluiceError: the run's observations were not checked, or its samples changed since.
    """
    tracking = open_tracking(run.workspace)
    exploration = run.output(EXPLORATION_FILE, ExplorationRecord)
    twin = twin_of(run)
    inputs = {
        "exploration": digest(exploration),
        "model": run.request.model,
        "checks": digest(report_digests(run)),
        "samples": digest({} if run.request.testbed == "recorded" else verified_samples(run)),
        "tracking": without_password(tracking.uri),
    }
    if twin is not None:
        inputs["twin"] = digest(twin)

    def make() -> SelectionRecord:
        dataset = Dataset.of(exploration.observations)
        forced = None if run.request.model == "auto" else run.request.model
        selection = choose(dataset, forced, None if twin is None else twin.curve)
        subject = LoggedSelection(run, exploration, dataset, selection, inputs)
        with mlflow_errors(tracking):
            if (finished := finished_selection(tracking, run, inputs)) is not None:
                return finished
            replace_unfinished(tracking, run)
            return log_selection(tracking, subject)

    key = run.key(SELECTION_FILE)
    record = run.workspace.once(key, inputs, SelectionRecord, make)
    run.progress.say(f"select: {record.model_uri}: {record.reason}")
    return run.workspace.uri(key)
