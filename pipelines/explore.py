"""Stage `explore`: the corners, then suggestions by Bayesian optimisation, each configured by BIDS2 and measured.

StreamBed section 6 over sections 5 and 4. Every measurement is kept as soon as it is done, so that a run that was
stopped goes on from its last measurement: the decision core is fed what was kept, and says what comes next.
"""

from collections.abc import Callable
from pathlib import Path

from models.capacity.exploration import Exploration, SearchSpace, recorded_steps
from models.capacity.observation import Budget, Observation
from models.errors import Infeasible
from pipelines.configure import Measurement, Optimizer
from pipelines.digests import digest
from pipelines.exploration_record import EXPLORATION_FILE, ExplorationRecord
from pipelines.profile import ProfileRecord
from pipelines.run import PipelineRun
from pipelines.samples import write_samples
from pipelines.testbeds import measuring, measuring_inputs, open_recorded, opened_testbed
from testbeds.protocol import Testbed


def explore(run: PipelineRun) -> str:
    """Measure the capacity of budgets until the model is good enough; returns the URI of `exploration.json`."""
    key = run.key(EXPLORATION_FILE)
    if run.request.measurements is not None:
        path, inputs = Path(run.request.measurements), {"measurements": run.measurements_digest}
        record = run.workspace.once(key, inputs, ExplorationRecord, lambda: recorded_exploration(run, path))
    else:
        profile = run.output("profile.json", ProfileRecord)
        inputs = {"profile": digest(profile), "request": digest(run.request)}
        record = run.workspace.once(key, inputs, ExplorationRecord, lambda: _explored(run, profile))
    run.progress.say(f"explore: {len(record.observations)} observations; {record.stopped_because}")
    return run.workspace.uri(key)


def recorded_exploration(run: PipelineRun, path: Path) -> ExplorationRecord:
    """The rows of a measurements file, as the exploration that whoever made them had.

    Their memory is that of a TaskManager with as many slots as the test cluster's workers have.
    """
    testbed = open_recorded(run, path)
    return ExplorationRecord(
        job=run.job.name,
        testbed=run.request.testbed,
        slots_per_worker=testbed.limits.slots_per_worker,
        observations=testbed.observations,
        steps=recorded_steps([(o.budget, o.mst) for o in testbed.observations]),
        stopped_because=f"they are the rows of {path.name}",
    )


def _explored(run: PipelineRun, profile: ProfileRecord) -> ExplorationRecord:
    with opened_testbed(run) as testbed:
        return _Explorer(run, profile, testbed).explore()


class _Explorer:
    """Drives one exploration, keeping every measurement under the run."""

    def __init__(self, run: PipelineRun, profile: ProfileRecord, testbed: Testbed) -> None:
        self._run = run
        self._inputs = measuring_inputs(run) | {"profile": digest(profile)}
        self._single_tasks: dict[float, Observation] = {}
        how = measuring(run)
        job = run.job if how.as_file_says else run.job.model_copy(update={"memory_levels_mb": ()})
        self._optimizer = Optimizer(
            job, testbed, profile.source_rate_per_task, profile.operators, how.mst, run.progress.say
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
        exploration = Exploration(self._space, seed=request.seed, max_measurements=request.max_measurements)
        observations: list[Observation] = []
        while (budget := exploration.next()) is not None:
            observation = self._observe(budget, len(observations))
            observations.append(observation)
            exploration.observe(observation.mst)
            run.progress.say(
                f"explore: {len(observations):2d}. {budget.task_slots} slots, {budget.memory_mb:,.0f} MiB "
                f"-> {observation.mst:,.0f} records/s"
            )
        return ExplorationRecord(
            job=run.job.name,
            testbed=request.testbed,
            slots_per_worker=self._slots_per_worker,
            observations=tuple(observations),
            steps=exploration.steps,
            stopped_because=exploration.reason,
        )

    def _observe(self, budget: Budget, index: int) -> Observation:
        """The observation of a step: the one that was kept, or a new measurement."""
        name, seed = f"m{index:03d}", self._run.request.seed * 1000 + index + 1
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
        """Measure once; the samples are written before the observation that says they are there.

        Args:
            budget: of a step with this name; another one where a run of the same name explores differently.
        """

        def make() -> Observation:
            measurement = measure(f"{self._run.run_id}-{name}")
            write_samples(self._run.workspace, measurement.samples)
            return measurement.observation

        key = self._run.key("observations", f"{name}.json")
        inputs = self._inputs | {"budget": digest(budget)}
        return self._run.workspace.once(key, inputs, Observation, make)
