"""Which registered model a run plans with."""

from dataclasses import dataclass

from models.capacity.surrogates import Surrogate
from pipelines.registry import LoadedModel, load_champion, load_registered
from pipelines.run import PipelineRun
from pipelines.selection_record import SELECTION_FILE, SelectionRecord


@dataclass(frozen=True)
class PlanningModel:
    """A loaded model, and why it is the one."""

    loaded: LoadedModel
    reason: str

    @property
    def surrogate(self) -> Surrogate:
        return self.loaded.surrogate

    @property
    def uri(self) -> str:
        """Model and version, for example 'models:/nexmark-q5/3'."""
        return self.loaded.uri


def planning_model(run: PipelineRun) -> PlanningModel:
    """The job's champion, unless the request named a model, or the champion was measured on another testbed.

    Raises:
        NoSuchModel: the job has no champion.
        SluiceError: the model was changed after it was registered, or MLflow cannot be reached.
    """
    own = run.output(SELECTION_FILE, SelectionRecord)
    if own.forced:
        return PlanningModel(_own(run, own), f"planned with {own.model_uri}, since the request asked for {own.model}")
    champion = load_champion(run.workspace, run.job.name)
    if champion.selection.testbed != own.testbed:
        return PlanningModel(
            _own(run, own),
            f"planned with {own.model_uri}, since the champion {champion.uri} was measured on another testbed "
            f"({champion.selection.testbed})",
        )
    return PlanningModel(champion, f"planned with the champion {champion.uri}")


def _own(run: PipelineRun, own: SelectionRecord) -> LoadedModel:
    return load_registered(run.workspace, run.job.name, own.model_version)
