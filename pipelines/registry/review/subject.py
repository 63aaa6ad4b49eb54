"""What is reviewed: the challenger, the champion it is compared with, and what both were fitted to."""

from collections.abc import Sequence
from dataclasses import dataclass

from models.capacity.growth.capacity_model import CapacityModel
from models.capacity.growth.dataset import Dataset
from models.capacity.sizing import Margin, task_slots_for
from models.errors import Infeasible, SluiceError
from models.job import Job
from models.objectives.recovery import catch_up_factor
from models.plan.content import Plan
from models.planning.resources import budget_memory_mb
from pipelines.inputs.job_files import operations_of
from pipelines.inputs.operations.operations import Reviewing
from pipelines.measuring.exploration_record import EXPLORATION_FILE, ExplorationRecord
from pipelines.registry.models import CHAMPION, PENDING, VersionInfo, load_version
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
    capacity: CapacityModel
    """The challenger."""
    champion: SelectionRecord | None
    """Of the same testbed."""
    champion_capacity: CapacityModel | None
    """None where there is no such champion, or where its files are gone or changed."""
    elsewhere: SelectionRecord | None
    """The champion where it was measured on another testbed."""
    present: Dataset
    evidence: Evidence | None
    slots: SlotChange

    @property
    def limits(self) -> Reviewing:
        return review_settings(self.run.job)

    @property
    def drawn(self) -> tuple[DrawnModel, ...]:
        challenger = DrawnModel("challenger", self.selection.model_uri, self.capacity)
        if self.champion is None or self.champion_capacity is None:
            return (challenger,)
        return (challenger, DrawnModel("champion", self.champion.model_uri, self.champion_capacity))


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
    run: PipelineRun, tracking: Tracking, challenger: VersionInfo, champion: VersionInfo | None
) -> ReviewSubject:
    """Everything that a review looks at; both models come from MLflow, and so do the champion's observations."""
    exploration = run.output(EXPLORATION_FILE, ExplorationRecord)
    selection, capacity = challenger.selection, load_version(run.workspace, tracking, challenger).capacity
    other = None if champion is None else champion.selection
    same_testbed = other is not None and other.testbed == selection.testbed
    compared = _fitted(run, tracking, champion) if champion is not None and same_testbed else None
    evidence = None
    if not same_testbed or compared is not None:  # without its observations, what the champion has seen is unknown
        present = FittedModel(selection, capacity, exploration.observations, exploration.kept_back)
        evidence = gather_evidence(present, compared)
    before = None if compared is None else compared.capacity
    data = Dataset.of(exploration.observations)
    return ReviewSubject(
        run=run,
        selection=selection,
        capacity=capacity,
        champion=other if same_testbed else None,
        champion_capacity=before,
        elsewhere=None if same_testbed else other,
        present=data,
        evidence=evidence,
        slots=_slot_change(run, capacity, before, exploration),
    )


def _fitted(run: PipelineRun, tracking: Tracking, champion: VersionInfo) -> FittedModel | None:
    """The champion with its observations; None where either is gone or changed."""
    past = logged_exploration(tracking, champion.selection)
    try:
        loaded = load_version(run.workspace, tracking, champion)
    except SluiceError as error:
        run.progress.say(f"review: the champion is not compared: {error}")
        return None
    if past is None:
        return None
    return FittedModel(champion.selection, loaded.capacity, past.observations, past.kept_back)


def _margin_of(plan: Plan) -> Margin:
    """How safely a plan was made."""
    recovery = None if plan.objectives is None else plan.objectives.asked.recovery
    catch_up = 1.0 if recovery is None else catch_up_factor(recovery)
    if plan.risk is None:
        return Margin(headroom=plan.headroom, catch_up=catch_up)
    return Margin(risk=plan.risk, catch_up=catch_up)


def _slot_change(
    run: PipelineRun, challenger: CapacityModel, champion: CapacityModel | None, exploration: ExplorationRecord
) -> SlotChange:
    """At the rate, memory and margin of the plan in force; of the request where there is none."""
    plan, request = PlanStore(run.workspace).latest(run.job.name), run.request
    if plan is None:
        memory_mb = request.memory_mb or max(o.memory_mb for o in exploration.observations)
    else:
        memory_mb = budget_memory_mb(plan, run.job, exploration.slots_per_worker)
    rate = request.rate if plan is None else plan.target_rate
    margin = Margin.asked(request.risk, request.headroom, challenger) if plan is None else _margin_of(plan)
    fewest = len(run.job.scaled_operators)

    def needed(model: CapacityModel | None) -> int | None:
        try:
            return None if model is None else task_slots_for(model, memory_mb, rate, margin, fewest)
        except Infeasible:
            return None

    return SlotChange(
        rate=rate, margin=margin, memory_mb=memory_mb, challenger=needed(challenger), champion=needed(champion)
    )
