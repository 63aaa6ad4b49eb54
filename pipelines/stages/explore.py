"""Stage `explore`: the corners, then the budgets that an exploration chooses, each configured by BIDS2 and measured.

StreamBed section 6 over sections 5 and 4. Every measurement is stored as soon as it ends, so that a stopped run resumes
from its last measurement: the decision core replays the stored ones, and decides what comes next. Where it explores for
a target rate, it also takes what a run of the same name measured for another rate.
"""

from collections.abc import Callable
from pathlib import Path

from models.capacity.exploration.exploration import KEPT_BACK, Exploration
from models.capacity.exploration.question import SizingQuestion
from models.capacity.exploration.space import SearchSpace, recorded_steps
from models.capacity.exploration.streambed import StreamBedExploration
from models.capacity.exploration.suggesting import MeasuringTime
from models.capacity.exploration.targeted import TargetedExploration
from models.capacity.observation import Budget, Observation
from models.capacity.sizing import DEFAULT_RISK, Margin
from models.errors import Infeasible
from models.planning.resources import fitting_memory, stateful_per_slot
from models.wording import amount
from pipelines.inputs.measurements import read_measurements
from pipelines.measuring.configure import Measurement, Optimizer
from pipelines.measuring.exploration_record import (
    EXPLORATION_FILE,
    OBSERVATIONS,
    ExplorationRecord,
    kept_observations,
    stored_budget,
)
from pipelines.measuring.testbeds import measuring, measuring_inputs, open_recorded, opened_testbed
from pipelines.run import PipelineRun
from pipelines.stages.profile import PROFILE_FILE, ProfileRecord
from pipelines.store.digests import digest
from pipelines.store.samples import samples_flaw, write_samples
from pipelines.store.workspace import Damaged
from testbeds.protocol import Testbed


def explore(run: PipelineRun) -> str:
    """Measure the capacity of budgets until the model is good enough; returns the URI of `exploration.json`."""
    key = run.key(EXPLORATION_FILE)
    if run.request.measurements is not None:
        path, inputs = Path(run.request.measurements), {"measurements": run.measurements_digest}
        record = run.workspace.once(key, inputs, ExplorationRecord, lambda: recorded_exploration(run, path))
    else:
        profile = run.output(PROFILE_FILE, ProfileRecord)
        inputs = {"profile": digest(profile), "request": digest(run.request)}
        record = run.workspace.once(
            key, inputs, ExplorationRecord, lambda: _explored(run, profile), lambda _: _samples_flaw(run)
        )
    follows = run.request.explores_for_target and run.request.wants_twin
    remark = "; so far by the growth laws alone, the twin comes next" if follows else ""
    run.progress.say(f"explore: {len(record.observations)} observations; {record.stopped_because}{remark}")
    return run.workspace.uri(key)


def recorded_exploration(run: PipelineRun, path: Path) -> ExplorationRecord:
    """The rows of a measurements file as an exploration; those after the first `measurement_rows` are kept back.

    Their memory is that of a TaskManager with the slots of the test cluster's workers.
    """
    testbed = open_recorded(run, path)
    rows = run.request.measurement_rows
    kept_back = () if rows is None else read_measurements(path, job=run.job)[rows:]
    return ExplorationRecord(
        job=run.job.name,
        testbed=run.request.testbed,
        slots_per_worker=testbed.limits.slots_per_worker,
        observations=testbed.observations,
        kept_back=kept_back,
        steps=recorded_steps([(o.budget, o.mst) for o in testbed.observations]),
        stopped_because=f"they are the rows of {path.name}",
    )


def _samples_flaw(run: PipelineRun) -> str | None:
    """The fault of the first stored measurement whose samples are damaged; None if all are intact."""
    try:
        flaws = (samples_flaw(run.workspace, run.job.name, o.run, o.samples_digest) for o in kept_observations(run))
        return next(filter(None, flaws), None)
    except Damaged as error:
        return str(error)


def _explored(run: PipelineRun, profile: ProfileRecord) -> ExplorationRecord:
    with opened_testbed(run) as testbed:
        return _Explorer(run, profile, testbed).explore()


class _Explorer:
    """Drives one exploration, storing every measurement in the run."""

    def __init__(self, run: PipelineRun, profile: ProfileRecord, testbed: Testbed) -> None:
        self._run = run
        self._inputs = measuring_inputs(run) | {"profile": digest(profile)}
        self._single_tasks: dict[float, Observation] = {}
        self._how = how = measuring(run)
        job = run.job if how.as_file_says else run.job.model_copy(update={"memory_levels_mb": ()})
        self._optimizer = Optimizer(
            job, testbed, profile.source_rate_per_task, profile.operators, how.mst, how.by_drain, run.progress.say
        )
        fewest, most = self._optimizer.fewest_task_slots, min(run.request.max_task_slots, testbed.limits.max_task_slots)
        if fewest > most:
            raise Infeasible(
                f"job {run.job.name!r} has {fewest} operators besides its sources and needs a task slot for each, but "
                f"at most {most} may be used; raise the most task slots"
            )
        self._slots_per_worker = testbed.limits.slots_per_worker
        self._space = SearchSpace(min_slots=fewest, max_slots=most, memory_levels_mb=self._optimizer.memory_levels_mb)

    def explore(self) -> ExplorationRecord:
        run, request = self._run, self._run.request
        exploration = self._exploration()
        observations: list[Observation] = []
        kept_back: list[Observation] = []
        while (budget := exploration.next()) is not None:
            number = len(observations) + len(kept_back)
            observation = self._observe(self._stored(number) or budget, number)
            (kept_back if exploration.keeps_back else observations).append(observation)
            remark = ", kept back for the review" if exploration.keeps_back else ""
            exploration.observe(observation.mst, observation.budget)
            if not remark and isinstance(exploration, TargetedExploration) and exploration.answer is not None:
                remark = f"; {exploration.answer.text}"
            bound = "" if observation.bound_by is None else f", {observation.bound_by.title}"
            run.progress.say(
                f"explore: {number + 1:2d}. {observation.task_slots} slots, {observation.memory_mb:,.0f} MiB "
                f"-> {amount(observation.mst)} records/s{bound}{remark}"
            )
        return ExplorationRecord(
            job=run.job.name,
            testbed=request.testbed,
            slots_per_worker=self._slots_per_worker,
            observations=tuple(observations),
            kept_back=tuple(kept_back),
            steps=exploration.steps,
            stopped_because=exploration.reason,
            would_help=exploration.would_help if isinstance(exploration, TargetedExploration) else None,
        )

    def _exploration(self) -> Exploration:
        request, space, most = self._run.request, self._space, self._run.request.max_measurements
        if not request.explores_for_target:
            return StreamBedExploration(space, request.seed, max_measurements=most, kept_back=KEPT_BACK)
        unstated = request.risk is None and request.headroom is None
        question = SizingQuestion(
            rate=request.rate,
            margin=Margin(
                risk=DEFAULT_RISK if unstated else request.risk,
                headroom=request.headroom,
                catch_up=request.catch_up,
            ),
            memory_levels_mb=self._planned_memory_mb(),
            fewest_slots=space.min_slots,
            precision=request.precision,
        )
        time = MeasuringTime(search_s=self._how.longest_s, deployment_s=self._how.deployment_s)
        return TargetedExploration(space, request.seed, question, time, most, KEPT_BACK)

    def _planned_memory_mb(self) -> tuple[float, ...]:
        """TaskManager memory sizes that the plan may take, MiB."""
        if self._run.request.memory_mb is not None:
            return (self._run.request.memory_mb,)
        levels, times = self._space.memory_levels_mb, stateful_per_slot(self._run.job)
        try:
            return tuple(fitting_memory(levels, self._slots_per_worker, self._run.cluster, times))
        except Infeasible:
            return levels  # The stage `size` refuses them, with what was measured.

    def _stored(self, index: int) -> Budget | None:
        """What a run of the same name measured at this step after the corners, for whatever rate."""
        if not self._run.request.explores_for_target or index < len(self._space.corners):
            return None
        budget = stored_budget(self._run, _name(index), self._inputs)
        return budget if budget is not None and budget in self._space else None

    def _observe(self, budget: Budget, index: int) -> Observation:
        """The observation of a step: stored, or newly measured."""
        name, seed = _name(index), self._run.request.seed * 1000 + index + 1
        if budget.task_slots == self._optimizer.fewest_task_slots:
            observation = self._kept(
                name, budget, lambda run: self._optimizer.measure_single_task(budget.memory_mb, run, seed)
            )
            self._single_tasks.setdefault(budget.memory_mb, observation)
            return observation
        rates = self._single_task(budget.memory_mb).operators
        return self._kept(name, budget, lambda run: self._optimizer.measure(budget, rates, run, seed))

    def _single_task(self, memory_mb: float) -> Observation:
        """The single-task run of a memory level: measured once, and reused (StreamBed section 5)."""
        if memory_mb not in self._single_tasks:
            seed = self._run.request.seed * 1000
            budget = Budget(task_slots=self._optimizer.fewest_task_slots, memory_mb=memory_mb)
            self._single_tasks[memory_mb] = self._kept(
                f"single-{memory_mb:g}", budget, lambda run: self._optimizer.measure_single_task(memory_mb, run, seed)
            )
        return self._single_tasks[memory_mb]

    def _kept(self, name: str, budget: Budget, measure: Callable[[str], Measurement]) -> Observation:
        """Measure once; the samples are written before the observation that refers to them.

        Args:
            budget: of the step with this name; it may differ if a run of the same name explores differently.
        """

        def make() -> Observation:
            measurement = measure(f"{run.run_id}-{name}")
            digests = write_samples(run.workspace, measurement.samples)
            kept = measurement.observation
            return kept.model_copy(update={"samples_digest": digests[kept.run]})

        def flaw(kept: Observation) -> str | None:
            return samples_flaw(run.workspace, run.job.name, kept.run, kept.samples_digest)

        run = self._run
        key, inputs = run.key(OBSERVATIONS, f"{name}.json"), self._inputs | {"budget": digest(budget)}
        return run.workspace.once(key, inputs, Observation, make, flaw)


def _name(index: int) -> str:
    """Of a measurement."""
    return f"m{index:03d}"
