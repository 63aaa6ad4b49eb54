"""What is reviewed: the challenger, the champion it is compared with, and what both were fitted to."""

from collections.abc import Sequence
from dataclasses import dataclass

from models.capacity.sizing import task_slots_for
from models.capacity.surrogates import Dataset, Surrogate
from models.errors import Infeasible
from models.job import Job
from pipelines.inputs.job_files import operations_of
from pipelines.inputs.operations import Reviewing
from pipelines.measuring.exploration_record import EXPLORATION_FILE, ExplorationRecord
from pipelines.registry.models import CHAMPION, PENDING, VersionInfo
from pipelines.registry.review.figures import DrawnModel
from pipelines.registry.review.record import SlotChange
from pipelines.registry.review.rule import Evidence, FittedModel, gather_evidence
from pipelines.registry.selection_log import logged_exploration
from pipelines.registry.selection_record import SelectionRecord
from pipelines.registry.tracking import Tracking
from pipelines.run import PipelineRun
from pipelines.store.plans import PlanStore


@dataclass(frozen=True)
class ReviewSubject:
    """Everything that a review looks at."""

    run: PipelineRun
    selection: SelectionRecord
    champion: SelectionRecord | None
    """Of the same testbed."""
    elsewhere: SelectionRecord | None
    """The champion where it was measured on another testbed."""
    present: Dataset
    past: Dataset | None
    """None where there is no champion, or where its observations are gone."""
    evidence: Evidence | None
    slots: SlotChange

    @property
    def limits(self) -> Reviewing:
        return review_settings(self.run.job)

    @property
    def drawn(self) -> tuple[DrawnModel, ...]:
        challenger = DrawnModel("challenger", self.selection.model_uri, self.selection.surrogate, self.present)
        if self.champion is None:
            return (challenger,)
        return (challenger, DrawnModel("champion", self.champion.model_uri, self.champion.surrogate, self.past))


def review_settings(job: Job) -> Reviewing:
    """The review settings of the job's file, or the defaults."""
    return operations_of(job).review


def waits_for_person(run: PipelineRun, own: SelectionRecord, versions: Sequence[VersionInfo]) -> bool:
    """Whether nothing is planned by this run until a person has decided about its model.

    Where the rule decides but has no evidence about a model, plans keep to the champion of the same testbed; a model that
    the request names is planned with as it is.
    """
    review = next((v.review for v in versions if v.version == own.model_version), None)
    settings = review_settings(run.job)
    if review != PENDING or settings.allow_unreviewed:
        return False
    return settings.mode != "rule" or not (own.forced or any(_stands_in(v, own) for v in versions))


def _stands_in(version: VersionInfo, own: SelectionRecord) -> bool:
    return CHAMPION in version.aliases and version.is_approved and version.selection.testbed == own.testbed


def gather(
    run: PipelineRun, tracking: Tracking, selection: SelectionRecord, champion: VersionInfo | None
) -> ReviewSubject:
    """Everything that a review looks at; the champion's observations come from MLflow."""
    exploration = run.output(EXPLORATION_FILE, ExplorationRecord)
    present = Dataset.of(exploration.observations)
    other = None if champion is None else champion.selection
    same_testbed = other is not None and other.testbed == selection.testbed
    compared = other if same_testbed else None
    past = None if compared is None else logged_exploration(tracking, compared)
    evidence = None
    if compared is None or past is not None:  # without its observations, what the champion has seen is unknown
        evidence = gather_evidence(
            FittedModel(selection, exploration.observations, exploration.kept_back),
            None if compared is None or past is None else FittedModel(compared, past.observations, past.kept_back),
        )
    return ReviewSubject(
        run=run,
        selection=selection,
        champion=compared,
        elsewhere=None if same_testbed else other,
        present=present,
        past=None if past is None else Dataset.of(past.observations),
        evidence=evidence,
        slots=_slot_change(run, selection.surrogate, None if compared is None else compared.surrogate, present),
    )


def _slot_change(run: PipelineRun, challenger: Surrogate, champion: Surrogate | None, present: Dataset) -> SlotChange:
    """At the rate and memory of the plan in force; of the request where there is none."""
    plan, request = PlanStore(run.workspace).latest(run.job.name), run.request
    memory_mb = request.memory_mb or float(present.memory_mb.max()) if plan is None else plan.memory_mb
    rate, headroom = (request.rate, request.headroom) if plan is None else (plan.target_rate, plan.headroom)
    fewest = len(run.job.scaled_operators)

    def needed(surrogate: Surrogate | None) -> int | None:
        try:
            return None if surrogate is None else task_slots_for(surrogate, memory_mb, rate, headroom, fewest)
        except Infeasible:
            return None

    return SlotChange(
        rate=rate, headroom=headroom, memory_mb=memory_mb, challenger=needed(challenger), champion=needed(champion)
    )
