"""From measured configurations to the simulator's inputs: the job's figures, the cluster's cores, the machine."""

import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial

import pyarrow as pa

from models.capacity.calibration import (
    GUESS_WEIGHT,
    WorkerWindow,
    cores_for_tasks,
    fit_factor,
    fit_unit_costs,
    hot_share,
)
from models.cluster import Cluster
from models.errors import SluiceError
from models.job import Job, Keys, Operator
from pipelines.calibration.figures import OperatorFigures, figures, saturated_windows, settled_windows, task_shares
from pipelines.calibration.prediction import Simulation, predicted_mst
from pipelines.calibration.request import CalibrationRequest, MeasuredConfiguration
from testbeds.simulator.settings import Physics

ALL_HITS = 0.99
"""Hit rate of state reads from which on none is assumed to wait for the device."""
MANY_KEYS = 1_000_000
FOR_GOOD = 1e15
"""Records after which another key is hot, if one is hot all the time."""
LEAST_SKEW = 0.05
"""Share of a hot key below which an uneven distribution is attributed to chance."""


def loaded_windows(samples: pa.Table) -> list[WorkerWindow]:
    """The use of each worker at rates that the job sustains, and beyond."""
    return [*settled_windows(samples), *saturated_windows(samples)]


def unit_costs(
    job: Job,
    measured: Sequence[pa.Table],
    windows: Callable[[pa.Table], Sequence[WorkerWindow]] = loaded_windows,
    guess_weight: float = GUESS_WEIGHT,
) -> dict[str, float]:
    """CPU seconds per record of each operator.

    Args:
        windows: of a run's samples, to fit to.
        guess_weight: of the samples' own costs, as in `fit_unit_costs`.

    Raises:
        SluiceError: an operator took no records, so its cost is unknown.
    """
    guess = figures(job, pa.concat_tables(measured)).cpu_s
    silent = [o.name for o in job.operators if o.name not in guess]
    if silent:
        raise SluiceError(
            f"operator {silent[0]!r} of job {job.name!r} took no records during the measurement, so its cost is unknown; "
            "measure for longer"
        )
    return fit_unit_costs([window for samples in measured for window in windows(samples)], guess, guess_weight)


def fit(
    believed: Simulation,
    configurations: Sequence[MeasuredConfiguration],
    measured: Sequence[pa.Table],
    request: CalibrationRequest,
    where: str,
) -> tuple[Simulation, float]:
    """The job, cluster and machine with which the simulator reproduces the MSTs of these configurations on average.

    Args:
        believed: the job by its file, the cluster as requested, and the known constants of the machine.
        measured: samples of each configuration.
        where: the place of the measurements, for `figures_from`.

    Returns:
        The fitted simulation, and the common factor included in the unit costs.
    """
    job, cluster = believed.job, believed.cluster
    seen, costs = figures(job, pa.concat_tables(measured)), unit_costs(job, measured)
    waits = {o.name: o.cost.external_wait_s for o in job.operators}
    cores = cores_for_tasks(_saturated(cluster, measured), external_wait_s=waits)
    fitted_cluster = cluster if cores is None else _with_cores(cluster, cores)
    skewed = _hot_shares(job, measured)
    source = f"measured on {where}"
    msts = [one.mst for one in configurations]

    def simulated(machine: Physics, factor: float) -> Simulation:
        with_costs = _job_with(job, seen, {name: c * factor for name, c in costs.items()}, skewed, source)
        return Simulation(with_costs, fitted_cluster, machine)

    def predicted(machine: Physics, factor: float) -> list[float]:
        found = [
            predicted_mst(simulated(machine, factor), one.parallelism, one.memory_mb, request.mst)
            for one in configurations
        ]
        if not all(found):
            raise SluiceError(
                f"the simulator sustains no rate of job {job.name!r} with the measured figures; measure for longer, "
                "on a machine that is less busy"
            )
        return found

    fits = [(machine, *fit_factor(partial(predicted, machine), msts)) for machine in _machines(believed.machine, seen)]
    # Unit costs were measured, so a common factor on them counts as an error, too.
    machine, factor, _ = min(fits, key=lambda fit: math.hypot(math.log(fit[1]), fit[2]))
    return simulated(machine, factor), factor


def _saturated(cluster: Cluster, measured: Sequence[pa.Table]) -> list[WorkerWindow]:
    workers = {w.name for w in cluster.workers}
    return [window for samples in measured for window in saturated_windows(samples, workers)]


def _with_cores(cluster: Cluster, cores: float) -> Cluster:
    workers = tuple(w.model_copy(update={"cores": cores}) for w in cluster.workers)
    described = f"{cluster.description} Cores are those that tasks got when they could use more, measured.".strip()
    return cluster.model_copy(update={"workers": workers, "description": described})


def _machines(machine: Physics, seen: OperatorFigures) -> list[Physics]:
    """Candidates for the machine's constants. Flushes and compilation are included in the measured costs. State outside of a
    task's cache is on a device, or in the page cache of a machine with spare memory; if almost all of it was in the cache,
    no read waited.
    """
    state = machine.state.model_copy(update={"flush_s": 0.0})
    waiting = machine.model_copy(update={"cold_slowdown": 0.0, "state": state})
    without = waiting.model_copy(update={"state": state.model_copy(update={"block_latency_s": 0.0})})
    if not seen.cache_hit_rate:
        return [waiting]
    return [without] if min(seen.cache_hit_rate.values()) >= ALL_HITS else [waiting, without]


def _hot_shares(job: Job, measured: Sequence[pa.Table]) -> dict[str, float]:
    """The share of a hot key of operators with unknown keys, from the configuration with most of their tasks."""
    found = {}
    for operator in job.operators:
        if operator.keys == Keys(distinct=1):
            shares = max((task_shares(samples, operator.name) for samples in measured), key=len)
            if len(shares) > 1:
                found[operator.name] = hot_share(shares)
    return found


def _job_with(
    job: Job, seen: OperatorFigures, cpu_s: Mapping[str, float], skewed: Mapping[str, float], source: str
) -> Job:
    operators = tuple(_operator_with(o, seen, cpu_s[o.name], skewed.get(o.name), source) for o in job.operators)
    return job.model_copy(
        update={"operators": operators, "figures_from": f"{source}; what was not measured: {job.figures_from}"}
    )


def _operator_with(operator: Operator, seen: OperatorFigures, cpu_s: float, hot: float | None, source: str) -> Operator:
    name, cost = operator.name, operator.cost
    measured = ["CPU"]
    changes: dict[str, float] = {"cpu_s": cpu_s}
    if name in seen.bytes_out:
        changes["bytes_out"] = seen.bytes_out[name]
        measured.append("bytes out")
    if seen.state_read_bytes.get(name, 0.0) + seen.state_write_bytes.get(name, 0.0) > 0:
        changes["state_read_bytes"] = seen.state_read_bytes[name]
        changes["state_write_bytes"] = seen.state_write_bytes[name]
        measured.append("state accesses")
    updates: dict[str, object] = {"cost": cost.model_copy(update=changes)}
    if name in seen.selectivity:
        updates["selectivity"] = seen.selectivity[name]
        measured.append("selectivity")
    if hot is not None:
        updates["keys"] = _keys(hot)
        measured.append("skew")
    kept = [
        field for field in ("window", "keys", "state") if getattr(operator, field) is not None and field not in updates
    ]
    rest = f"; {', '.join(kept)}: {operator.figures_from}" if kept else ""
    updates["figures_from"] = f"{source}: {', '.join(measured)}{rest}"
    return operator.model_copy(update=updates)


def _keys(hot: float) -> Keys:
    if hot < LEAST_SKEW:
        return Keys(distinct=MANY_KEYS)
    return Keys(distinct=MANY_KEYS, hot_share=hot, hot_period_records=FOR_GOOD)
