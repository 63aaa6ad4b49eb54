"""Measure one configuration on a testbed: drive the MST search, collect its samples, and compute the rates."""

from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from models.capacity.backlog.overload import OverloadMeasurement
from models.capacity.mst import MstMeasurement, MstSearch, MstSettings
from models.capacity.observation import OperatorRates
from models.errors import SluiceError
from models.job import Job, Kind
from models.metrics import true_rate
from testbeds.protocol import MeasuredWindow, Run

OBSERVE = "observe"
SHORT: Final = MstSettings(
    warmup_s=10.0,
    cooldown_s=5.0,
    cooldown_after_sustained=False,
    ramp_s=5.0,
    observe_s=10.0,
    iterations=7,
    sensitivity=0.05,
    bracket=0.2,
)
"""A search in real time: some 80 s if the end of the warm-up is a good guess, and 130 s at most."""


def search_mst(run: Run, settings: MstSettings) -> tuple[MstSearch, list[MeasuredWindow]]:
    """Drive the search of StreamBed section 4 on a deployed job until it ends.

    Returns:
        The ended search, and every window that was injected, in order.
    """
    search = MstSearch(settings)
    return search, _driven(search, run)


def drained_mst(run: Run, settings: MstSettings) -> tuple[OverloadMeasurement, list[MeasuredWindow]]:
    """Offer a deployed job more than it takes until its rate is known; what it does not take must wait in its topics.

    Returns:
        The ended measurement, and every window that was injected, in order.
    """
    measurement = OverloadMeasurement(settings)
    return measurement, _driven(measurement, run)


def _driven(measurement: MstMeasurement, run: Run) -> list[MeasuredWindow]:
    windows: list[MeasuredWindow] = []
    while (injection := measurement.next()) is not None:
        windows.append(run.inject(injection.rate, injection.seconds, injection.phase))
        measurement.observe(windows[-1].achieved_rate)
    return windows


def samples_of(windows: list[MeasuredWindow]) -> pa.Table:
    """The samples of all windows, one table."""
    return pa.concat_tables([w.samples for w in windows])


def operator_rates(job: Job, samples: pa.Table) -> tuple[OperatorRates, ...]:
    """True rate per task and records in per source record of every operator but the sources (StreamBed Table 1).

    The true processing rate of a task is its actual rate over its busyness; over the tasks of an operator that is the
    sum of records in over the sum of busy seconds.

    Raises:
        SluiceError: an operator was never busy, so its rate is unknown.
    """
    totals = samples.group_by("operator").aggregate([("records_in", "sum"), ("busy_s", "sum")])
    by_operator = {row["operator"]: row for row in totals.to_pylist()}
    offered = sum(by_operator[source.name]["records_in_sum"] for source in job.sources)
    rates = []
    for operator in job.scaled_operators:
        total = by_operator.get(operator.name)
        if total is None or total["busy_s_sum"] <= 0 or total["records_in_sum"] <= 0 or offered <= 0:
            raise SluiceError(
                f"operator {operator.name!r} of job {job.name!r} received no records while it was observed, so its rate "
                "is unknown; observe for longer, or inject at a higher rate"
            )
        rates.append(
            OperatorRates(
                name=operator.name,
                true_rate_per_task=true_rate(total["records_in_sum"], total["busy_s_sum"]),
                records_in_per_source_record=total["records_in_sum"] / offered,
            )
        )
    return tuple(rates)


def source_rates_per_task(job: Job, samples: pa.Table) -> dict[str, float]:
    """Records/s of useful time that one task of each source takes in."""
    rates = {}
    for source in job.sources:
        own = samples.filter(pc.field("operator") == source.name)
        busy = pc.sum(own["busy_s"]).as_py() or 0.0
        if busy <= 0:
            raise SluiceError(f"source {source.name!r} of job {job.name!r} emitted nothing while it was observed")
        rates[source.name] = true_rate(pc.sum(own["records_in"]).as_py(), busy)
    return rates


def mst_settings(job: Job) -> MstSettings:
    """The timings of StreamBed section 8.2: longer if several operators keep state, as in q5 and q8."""
    stateful = [o for o in job.operators if o.kind is not Kind.SOURCE and o.state is not None]
    return MstSettings.complex() if len(stateful) > 1 else MstSettings.simple()
