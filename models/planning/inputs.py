"""The inputs of planning: the capacity model, the job's measurements, and the unit costs of its operators."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import Field

from models.capacity.growth.capacity_model import CapacityModel
from models.capacity.growth.dataset import Dataset
from models.capacity.growth.sustained import Sustained
from models.capacity.observation import Observation, OperatorRates
from models.errors import SluiceError
from models.job import Job, records_in_per_source_record
from models.planning.physical.expansion import UnitCost, broadcast_factor, catalogue_unit_costs
from models.planning.physical.sharing import tasks_for_partitions
from models.scaling.meter import MeteredGraph
from models.scaling.rates import OperatorMetrics, Rates
from models.schema import Format


class PlanningModel(Format):
    """The registered capacity model of a plan: bound once, when the job is sized, and passed on from there."""

    uri: str = Field(description="Registered model and version, for example 'models:/nexmark-q5/3'.")
    mlflow_run_id: str = Field(description="MLflow run that logged the model; the plan's report is logged there, too.")
    capacity: CapacityModel
    reason: str = Field(description="Why this model, in words.")
    sustained: tuple[Sustained, ...] = Field(
        (),
        exclude_if=lambda rates: not rates,
        description="Rates of production that `capacity` is conditioned on, beside the measurements of the registered model.",
    )


@dataclass(frozen=True)
class MeasuredCapacity:
    """The measured budgets, and the MST of each."""

    job: Job
    observations: tuple[Observation, ...]
    slots_per_worker: int
    """Slots of one TaskManager during the measurements."""

    @property
    def dataset(self) -> Dataset:
        return Dataset.of(self.observations)

    @property
    def memory_levels_mb(self) -> tuple[float, ...]:
        """TaskManager memory sizes that were measured, MiB, ascending."""
        return tuple(sorted({o.memory_mb for o in self.observations}))


@dataclass(frozen=True)
class MeasuredOperators:
    """Measured figures of a job's operators; all mappings are by operator, sources included."""

    job: Job
    true_rate_per_task: Mapping[str, float]
    """Records/s of useful time of one task."""
    selectivity: Mapping[str, float]
    records_in_per_source_record: Mapping[str, float]
    """r^i of StreamBed Table 1."""
    unit_costs: Mapping[str, UnitCost]
    origin: str
    """Where rates and unit costs come from, in words."""

    @property
    def operator_rates(self) -> tuple[OperatorRates, ...]:
        """The input of BIDS2: every operator but the sources."""
        return tuple(
            OperatorRates(
                name=o.name,
                true_rate_per_task=self.true_rate_per_task[o.name],
                records_in_per_source_record=self.records_in_per_source_record[o.name],
            )
            for o in self.job.scaled_operators
        )

    def policy_rates(self, rate: float) -> Rates:
        """The input of a scaling policy: one task of each operator, and the sources at their shares of `rate`."""
        graph = MeteredGraph.of(self.job)
        return Rates(
            edges=graph.edges,
            source_rates={s.name: rate * s.rate_share for s in self.job.sources},
            source_selectivity={s.name: self.selectivity[s.name] for s in self.job.sources},
            edge_shares=self._measured_shares(),
            operators={
                o.name: OperatorMetrics(
                    parallelism=1,
                    true_processing_rate=self.true_rate_per_task[o.name],
                    true_output_rate=self.true_rate_per_task[o.name] * self.selectivity[o.name],
                    **graph.limits[o.name],
                )
                for o in self.job.scaled_operators
            },
        )

    def _measured_shares(self) -> dict[str, dict[str, float]]:
        """Records over each edge per record out, by upstream and downstream operator.

        The shares in the job's file say how what reaches an operator is divided among its edges, and the measurements how
        much it is, r^i, as for BIDS2: with Flink's counters selectivities are too high where an operator has several edges.
        """
        into = {**self.records_in_per_source_record, **{s.name: s.rate_share for s in self.job.sources}}
        found: dict[str, dict[str, float]] = {}
        for name in self.job.order:
            edges = self.job.upstream_edges(name)
            stated = sum(into[e.upstream] * self.selectivity[e.upstream] * e.share for e in edges)
            for e in edges if stated > 0 else ():
                found.setdefault(e.upstream, {})[name] = e.share * into[name] / stated
        return found

    def busy_source_tasks(self, rate: float) -> dict[str, float]:
        """Tasks of each source that `rate` records/s keep busy all the time if they are divided evenly."""
        return {s.name: rate * s.rate_share / self.true_rate_per_task[s.name] for s in self.job.sources}

    @property
    def most_read(self) -> float:
        """Records/s at all sources together that a task for each partition reads at most; infinite without partitions."""
        one_each = self.busy_source_tasks(1.0)
        return min(
            (
                s.max_parallelism / one_each[s.name]
                for s in self.job.sources
                if s.max_parallelism is not None and s.rate_share
            ),
            default=math.inf,
        )

    def source_tasks(self, rate: float) -> dict[str, int]:
        """Tasks that each source needs to read its share of `rate` records/s, from its partitions where they are stated."""
        busy = self.busy_source_tasks(rate)
        return {s.name: tasks_for_partitions(busy[s.name], s.max_parallelism) for s in self.job.sources}

    def records_in(self, rate: float) -> dict[str, float]:
        """Records/s into all tasks of each operator when the sources take `rate` together."""
        return {name: ratio * rate for name, ratio in self.records_in_per_source_record.items()}


@dataclass(frozen=True)
class PlanningInputs:
    """The inputs of a plan without new measurements."""

    capacity: MeasuredCapacity
    operators: MeasuredOperators
    model: PlanningModel


def stated_operators(job: Job) -> MeasuredOperators:
    """The figures of the job's file, for published measurements, which hold no rates of single operators."""
    return MeasuredOperators(
        job=job,
        true_rate_per_task={o.name: 1 / o.cost.thread_s for o in job.operators},
        selectivity={o.name: o.selectivity for o in job.operators},
        records_in_per_source_record=records_in_per_source_record(job),
        unit_costs=catalogue_unit_costs(job),
        origin="the figures of the job's file, since published measurements hold no rates of single operators",
    )


def measured_operators(
    job: Job, features: list[dict[str, Any]], observations: tuple[Observation, ...], profile_run: str
) -> MeasuredOperators:
    """Rates of the largest configuration measured (StreamBed section 6, model usage), unit costs of the profile (CAPSys
    section 5.1).

    Args:
        features: rows of the features, one for each measurement run and operator.
        profile_run: measurement run of the profile.

    Raises:
        SluiceError: a figure of an operator is missing, since it received no records.
    """
    largest = max(observations, key=lambda o: (o.task_slots, o.mst))
    rates = {row["operator"]: row for row in features if row["run"] == largest.run}
    costs = {row["operator"]: row for row in features if row["run"] == profile_run}
    names = [o.name for o in job.operators]
    profiled = {name: int(_given(costs, name, "tasks")) for name in names}
    return MeasuredOperators(
        job=job,
        true_rate_per_task={n: _given(rates, n, "true_rate_per_task") for n in names},
        selectivity={n: _given(rates, n, "selectivity") for n in names},
        records_in_per_source_record={n: _given(rates, n, "records_in_per_source_record") for n in names},
        unit_costs={
            n: UnitCost(
                cpu_s=_given(costs, n, "cpu_s_per_record"),
                state_bytes=_given(costs, n, "state_bytes_per_record"),
                bytes_out=_given(costs, n, "bytes_out_per_record") / broadcast_factor(job, n, profiled),
            )
            for n in names
        },
        origin=f"rates from {largest.run}, the largest configuration measured; unit costs from {profile_run}",
    )


def _given(rows: Mapping[str, Mapping[str, Any]], operator: str, column: str) -> float:
    value = rows[operator][column] if operator in rows else None
    if value is None:
        raise SluiceError(
            f"the features hold no {column} of operator {operator!r}, since it received no records; measure for longer"
        )
    return float(value)
