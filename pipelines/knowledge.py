"""What is known of a job when a plan is made: its capacity model, the measured rates, and the unit costs."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from models.capacity.observation import OperatorRates
from models.capacity.surrogates import Dataset, Surrogate
from models.errors import SluiceError
from models.expansion import UnitCost, catalogue_unit_costs
from models.job import Job, records_in_per_source_record
from models.scaling.rates import OperatorMetrics, Rates
from pipelines.exploration_record import EXPLORATION_FILE, ExplorationRecord
from pipelines.planning_model import planning_model
from pipelines.profile import ProfileRecord
from pipelines.run import PipelineRun


@dataclass(frozen=True)
class Knowledge:
    """All that planning needs of a job; nothing in it is measured anew."""

    job: Job
    dataset: Dataset
    surrogate: Surrogate
    model_uri: str
    model_reason: str
    memory_levels_mb: tuple[float, ...]
    slots_per_worker: int
    """Slots that the memory of one TaskManager was shared by when it was measured."""
    true_rate_per_task: Mapping[str, float]
    """Records/s of useful time of one task of each operator, sources included."""
    selectivity: Mapping[str, float]
    records_in_per_source_record: Mapping[str, float]
    """r^i of StreamBed Table 1, sources included."""
    unit_costs: Mapping[str, UnitCost]
    origin: str
    """Where rates and unit costs come from, in words."""

    @property
    def operator_rates(self) -> tuple[OperatorRates, ...]:
        """What BIDS2 takes: of every operator but the sources."""
        return tuple(
            OperatorRates(
                name=o.name,
                true_rate_per_task=self.true_rate_per_task[o.name],
                records_in_per_source_record=self.records_in_per_source_record[o.name],
            )
            for o in self.job.scaled_operators
        )

    def policy_rates(self, rate: float) -> Rates:
        """What a scaling policy is told, with one task of each operator and the sources at their shares of `rate`."""
        return Rates(
            edges=tuple((e.upstream, e.downstream) for e in self.job.edges),
            source_rates={s.name: rate * s.rate_share for s in self.job.sources},
            operators={
                o.name: OperatorMetrics(
                    parallelism=1,
                    true_processing_rate=self.true_rate_per_task[o.name],
                    true_output_rate=self.true_rate_per_task[o.name] * self.selectivity[o.name],
                )
                for o in self.job.scaled_operators
            },
        )

    def source_tasks(self, rate: float) -> dict[str, int]:
        """Tasks that each source needs to emit its share of `rate` records/s."""
        return {
            s.name: max(1, math.ceil(rate * s.rate_share / self.true_rate_per_task[s.name])) for s in self.job.sources
        }


@dataclass(frozen=True)
class _Measured:
    """What the operators did, by name."""

    true_rate_per_task: dict[str, float]
    selectivity: dict[str, float]
    records_in_per_source_record: dict[str, float]
    unit_costs: dict[str, UnitCost]
    origin: str


def known(run: PipelineRun) -> Knowledge:
    """Gather what a run has left.

    Rates are those of the largest configuration measured (StreamBed section 6, model usage), unit costs those of the
    profile (CAPSys section 5.1). Published measurements hold neither, so the figures of the job's file serve.
    """
    exploration = run.output(EXPLORATION_FILE, ExplorationRecord)
    measured = _from_catalogue(run.job) if run.request.testbed == "recorded" else _from_features(run, exploration)
    model = planning_model(run)
    return Knowledge(
        job=run.job,
        dataset=Dataset.of(exploration.observations),
        surrogate=model.surrogate,
        model_uri=model.uri,
        model_reason=model.reason,
        memory_levels_mb=tuple(sorted({o.memory_mb for o in exploration.observations})),
        slots_per_worker=exploration.slots_per_worker,
        true_rate_per_task=measured.true_rate_per_task,
        selectivity=measured.selectivity,
        records_in_per_source_record=measured.records_in_per_source_record,
        unit_costs=measured.unit_costs,
        origin=measured.origin,
    )


def _from_catalogue(job: Job) -> _Measured:
    return _Measured(
        true_rate_per_task={o.name: 1 / o.cost.cpu_s for o in job.operators},
        selectivity={o.name: o.selectivity for o in job.operators},
        records_in_per_source_record=records_in_per_source_record(job),
        unit_costs=catalogue_unit_costs(job),
        origin="the figures of the job's file, since published measurements hold no rates of single operators",
    )


def _from_features(run: PipelineRun, exploration: ExplorationRecord) -> _Measured:
    largest = max(exploration.observations, key=lambda o: (o.task_slots, o.mst))
    profile = run.output("profile.json", ProfileRecord)
    rows = run.workspace.read_table(run.key("features.parquet")).to_pylist()
    rates = {row["operator"]: row for row in rows if row["run"] == largest.run}
    costs = {row["operator"]: row for row in rows if row["run"] == profile.run}
    names = [o.name for o in run.job.operators]
    return _Measured(
        true_rate_per_task={n: _given(rates, n, "true_rate_per_task") for n in names},
        selectivity={n: _given(rates, n, "selectivity") for n in names},
        records_in_per_source_record={n: _given(rates, n, "records_in_per_source_record") for n in names},
        unit_costs={
            n: UnitCost(
                cpu_s=_given(costs, n, "cpu_s_per_record"),
                state_bytes=_given(costs, n, "state_bytes_per_record"),
                bytes_out=_given(costs, n, "bytes_out_per_record"),
            )
            for n in names
        },
        origin=f"rates from {largest.run}, the largest configuration measured; unit costs from {profile.run}",
    )


def _given(rows: Mapping[str, Mapping[str, Any]], operator: str, column: str) -> float:
    value = rows[operator][column] if operator in rows else None
    if value is None:
        raise SluiceError(
            f"the features hold no {column} of operator {operator!r}, since it saw no records; measure for longer"
        )
    return float(value)
