"""The decisions of a plan for a running job at another rate, from what was observed of it."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, count
from typing import Final

from flink_client.jobs.running import room_for
from flink_client.rest.client import FlinkRest
from models.capacity.diagnosis.facts import BoundFacts
from models.capacity.growth.capacity_model import CapacityModel
from models.capacity.observation import Budget, Observation
from models.capacity.observed.record import ObservedCapacity, ObservedVertex
from models.capacity.observed.scaling import ObservedScaling
from models.capacity.sizing import Margin, slots_interval
from models.cluster import Cluster, WorkerKind, WorkerOffer
from models.errors import Infeasible, InvalidInput, SluiceError
from models.job import Job, records_in_per_source_record
from models.planning.budget import Sizing
from models.planning.inputs import MeasuredOperators, PlanningModel
from models.planning.physical.expansion import catalogue_unit_costs
from models.schema import NAME
from models.wording import amount, natural_order
from pipelines.observe.observation import Observed

AS_DEPLOYED: Final = "as-deployed"
KIND: Final = "taskmanager"


@dataclass(frozen=True)
class TaskManagers:
    """What each TaskManager of the running cluster has."""

    slots: int
    memory_mb: float
    ids: tuple[str, ...]
    """Flink's, in their natural order, of those that the job has to itself."""

    @classmethod
    def of(cls, rest: FlinkRest, job: str) -> "TaskManagers":
        """Those that the job can use.

        Raises:
            InvalidInput: they differ, or do not state their memory.
        """
        found = room_for(rest, job)
        slots = {one["slotsNumber"] for one in rest.get("/taskmanagers")["taskmanagers"]}
        memory = {one.memory_mb for one in found}
        if len(slots) != 1 or len(memory) != 1 or None in memory:
            raise InvalidInput(
                f"the TaskManagers must have equal slots and memory to plan more of them, but have {sorted(slots)} slots and "
                f"{sorted(f'{m:,.0f}' for m in memory if m is not None)} MiB; name the cluster to plan for with --cluster"
            )
        each = slots.pop()
        ids = sorted((one.task_manager for one in found if one.slots == each), key=natural_order)
        return cls(slots=each, memory_mb=next(m for m in memory if m is not None), ids=tuple(ids))

    def offer(self) -> WorkerOffer:
        """As many as the plan needs."""
        kind = WorkerKind(name=KIND, slots=self.slots, memory_mb=self.memory_mb)
        return WorkerOffer(name=AS_DEPLOYED, description="More of the TaskManagers that run the job.", kinds=(kind,))

    def named(self, planned: Cluster) -> Cluster:
        """The planned workers with the ids of these as far as there are as many, so that tasks can be placed on them; as
        they are where Flink's ids can be no names of workers."""
        if not all(re.fullmatch(NAME, id_) for id_ in self.ids):
            return planned
        more = (name for n in count(len(self.ids) + 1) if (name := f"{KIND}-{n}") not in self.ids)
        named = zip(planned.workers, chain(self.ids, more), strict=False)
        return planned.model_copy(update={"workers": tuple(w.model_copy(update={"name": name}) for w, name in named)})


@dataclass(frozen=True)
class RunningPlan:
    """The decisions for one observed job."""

    observed: Observed
    job: Job
    capacity: ObservedCapacity
    task_managers: TaskManagers
    run: str
    samples_digest: str

    @cached_property
    def names(self) -> dict[str, str]:
        """Operator of each vertex, by its label."""
        of = self.observed.operators
        return {v.name: of[v.id] for v in self._vertices}

    @property
    def _vertices(self) -> Sequence[ObservedVertex]:
        return [v for v in self.observed.job.vertices if v.state != "finished"]

    @cached_property
    def facts(self) -> BoundFacts:
        """What was seen, by operators of the job."""
        found = self.observed.facts
        if found is None:
            raise SluiceError("the sources emitted nothing while the job was observed; observe it while records come")
        operators = [
            o.model_copy(
                update={
                    "name": self.names[o.name],
                    "upstream": tuple(self.names[u] for u in o.upstream if u in self.names),
                }
            )
            for o in found.operators
            if o.name in self.names
        ]
        return found.model_copy(update={"operators": tuple(operators)})

    @cached_property
    def scaling(self) -> ObservedScaling:
        limits = {o.name: o.max_parallelism for o in self.job.operators if o.max_parallelism is not None}
        return ObservedScaling(self.facts, limits)

    @property
    def sources(self) -> frozenset[str]:
        return frozenset(s.name for s in self.job.sources)

    def observation(self) -> Observation:
        """The configuration that was seen, with its MST."""
        tasks = {self.names[v.name]: v.parallelism for v in self._vertices}
        return Observation(
            run=self.run,
            task_slots=sum(n for name, n in tasks.items() if name not in self.sources),
            memory_mb=self.task_managers.memory_mb,
            parallelism=tasks,
            mst=self.capacity.mst.value,
            measured_s=self.observed.job.observed_s,
            samples_digest=self.samples_digest,
            facts=self.facts,
        )

    def operators(self, rate: float) -> MeasuredOperators:
        """Figures of the operators, as far as their fullest tasks allow at the rate.

        Raises:
            Infeasible: no number of tasks takes it.
        """
        tasks, into = self.scaling.tasks(rate), records_in_per_source_record(self.job)
        rates_in = {name: ratio * self.facts.rate for name, ratio in into.items()}
        return MeasuredOperators(
            job=self.job,
            true_rate_per_task={
                name: max(self.scaling.rate_per_task(name, n, rates_in[name]), 1e-6) for name, n in tasks.items()
            },
            selectivity={o.name: o.selectivity for o in self.job.operators},
            records_in_per_source_record=into,
            unit_costs=catalogue_unit_costs(self.job),
            origin=f"rates and unit costs from the running job, {self.capacity.reason}",
        )

    def sized(self, rate: float, risk: float | None, headroom: float | None) -> Sizing:
        """The task slots for the rate, and the rate that sources are planned for.

        Raises:
            Infeasible: no number of tasks takes it, or takes it surely enough.
        """
        self.scaling.tasks(rate)  # says why, where no number of tasks takes the rate
        model = self.scaling.model(self.capacity.mst, self.task_managers.memory_mb, self.sources)
        margin = Margin.asked(risk, headroom, model)
        memory_mb, fewest = self.task_managers.memory_mb, len(self.job.scaled_operators)
        try:
            slots = slots_interval(model, memory_mb, rate, margin, fewest)
        except Infeasible as error:
            raise self._unsure(model, margin, rate) or error from error
        # Sources get the same margin as other vertices, and not what the last task of the tightest has to spare.
        planned_rate = self._by_figures(model, margin, rate, slots.value)
        return Sizing(
            model=PlanningModel(
                uri=self.observed.uri,
                mlflow_run_id=self.run,
                capacity=model,
                reason=f"planned with what was observed of the running job, by no registered model: {self.capacity.reason}",
            ),
            margin=margin,
            planned_rate=planned_rate,
            budget=Budget(task_slots=slots.value, memory_mb=memory_mb),
            slots=slots,
            task_slots_by_memory_mb={memory_mb: slots.value},
            slots_per_worker=self.task_managers.slots,
            shared_slots=True,
            reason=(
                f"{slots.value} task slots for {margin.of(rate)}: the tasks that keep the fullest of each vertex from being "
                "busy all the time, if a record costs what it does now; sizes that the job has not run at are less sure"
            ),
        )

    def _by_figures(self, model: CapacityModel, margin: Margin, rate: float, slots: int) -> float:
        """The rate that tasks must take by the figures of their vertices for another to be sustained with the margin."""
        surely = float(model.quantiles(self.task_managers.memory_mb, slots, (1 - margin.certainty,))[0, 0])
        return margin.factor * rate * self.scaling.rate_of(slots, self.sources) / surely

    def _unsure(self, model: CapacityModel, margin: Margin, rate: float) -> Infeasible | None:
        """Why no number of slots is sure enough: the limit of a vertex; None where none is why."""
        needed = self._by_figures(model, margin, rate, self.scaling.most_slots(self.sources))
        try:
            self.scaling.tasks(needed)
        except Infeasible as limit:
            return Infeasible(
                f"to sustain {margin.of(rate)}, the job must take {amount(needed)} records/s by its figures, and {limit}; or "
                "accept more risk (--risk)"
            )
        return None
