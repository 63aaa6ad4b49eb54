"""What is reviewed: the challenger, the champion it is compared with, and what both were trained on."""

from dataclasses import dataclass

from models.capacity.sizing import task_slots_for
from models.capacity.surrogates import Dataset, Surrogate
from models.errors import Infeasible
from models.job import Job
from models.operations import Operations, Reviewing
from pipelines.exploration_record import EXPLORATION_FILE, ExplorationRecord
from pipelines.plan_store import PlanStore
from pipelines.registry import VersionInfo
from pipelines.review.figures import Registered
from pipelines.review.record import SlotChange
from pipelines.review.rule import Comparison, compare
from pipelines.run import PipelineRun
from pipelines.selection_log import logged_observations
from pipelines.selection_record import SelectionRecord
from pipelines.tracking import Tracking


@dataclass(frozen=True)
class ReviewSubject:
    """Everything that a review looks at."""

    run: PipelineRun
    selection: SelectionRecord
    champion: SelectionRecord | None
    present: Dataset
    past: Dataset | None
    """None where there is no champion, or where its observations are gone."""
    comparison: Comparison | None
    slots: SlotChange

    @property
    def limits(self) -> Reviewing:
        return review_settings(self.run.job)

    @property
    def registered(self) -> tuple[Registered, ...]:
        challenger = Registered("challenger", self.selection.model_uri, self.selection.surrogate, self.present)
        if self.champion is None:
            return (challenger,)
        return (challenger, Registered("champion", self.champion.model_uri, self.champion.surrogate, self.past))


def review_settings(job: Job) -> Reviewing:
    """What the job's file says of reviews; the defaults where it says nothing."""
    return (job.operations or Operations()).review


def gather(
    run: PipelineRun, tracking: Tracking, selection: SelectionRecord, champion: VersionInfo | None
) -> ReviewSubject:
    """Everything there is to look at; the champion's observations come from MLflow."""
    present = run.output(EXPLORATION_FILE, ExplorationRecord).observations
    past = None if champion is None else logged_observations(tracking, champion.selection)
    other = None if champion is None else champion.selection
    return ReviewSubject(
        run=run,
        selection=selection,
        champion=other,
        present=Dataset.of(present),
        past=None if past is None else Dataset.of(past),
        comparison=compare(selection, present, other, past),
        slots=_slot_change(run, selection.surrogate, None if other is None else other.surrogate, Dataset.of(present)),
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
