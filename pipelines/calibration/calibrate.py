"""Measure a job's operators on a testbed, fit the simulator to them, and evaluate it on held-out configurations."""

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from models.capacity.calibration import median_absolute, relative_error
from models.errors import InvalidInput
from models.job import Job
from models.wording import amount
from pipelines.calibration.configurations import larger_ones, one_task_each
from pipelines.calibration.fitting import fit, unit_costs
from pipelines.calibration.measuring import Measurer
from pipelines.calibration.prediction import Simulation, predicted_mst
from pipelines.calibration.request import (
    CalibratedMst,
    Calibration,
    CalibrationRequest,
    MeasuredConfiguration,
    Role,
)
from pipelines.progress import Progress
from pipelines.store.digests import digest
from pipelines.store.samples import read_samples
from pipelines.store.workspace import Workspace
from testbeds.protocol import Testbed
from testbeds.simulator.settings import Physics


@dataclass(frozen=True)
class MeasuredConfigurations:
    """Configurations, smallest first, with the samples of each."""

    configurations: Sequence[MeasuredConfiguration]
    samples: Sequence[pa.Table]


def calibrate(
    job: Job, testbed: Testbed, request: CalibrationRequest, workspace: Workspace, progress: Progress
) -> Calibration:
    """Measure, fit and compare. Each measurement is stored as it is made; the same call resumes after a stop.

    Raises:
        InvalidInput: fewer than two configurations are left for the calibration itself.
        Infeasible: the testbed has too few slots or too little memory.
        SluiceError: a measurement failed.
    """
    if request.configurations - request.held_out < 1:
        raise InvalidInput(
            f"at least one configuration must not be held out, but of {request.configurations} all are to be "
            f"({request.held_out}); measure more, or hold out fewer"
        )
    name = calibration_id(job, testbed, request)
    measured = measure(Measurer(job, testbed, request, workspace, progress, name))
    kept = request.configurations - request.held_out
    where = f"{testbed.name} ({testbed.cluster.name}), runs {name}-00 to {name}-{kept - 1:02}"
    progress.say(f"calibrate: fitting to {kept} of {request.configurations} configurations")
    believed = Simulation(job, testbed.cluster, Physics(source_burst_s=testbed.limits.source_burst_s))
    fitted, factor = fit(believed, measured.configurations[:kept], measured.samples[:kept], request, where)
    comparisons = tuple(
        _compare(believed, fitted, request, one, Role.CALIBRATION if i < kept else Role.HELD_OUT)
        for i, one in enumerate(measured.configurations)
    )
    unseen = [c for c in comparisons if c.role is Role.HELD_OUT]
    calibration = Calibration(
        testbed=testbed.name,
        job=fitted.job,
        cluster=fitted.cluster,
        machine=fitted.machine,
        common_factor=factor,
        comparisons=comparisons,
        uncalibrated_error=median_absolute([c.uncalibrated_error for c in unseen]),
        calibrated_error=median_absolute([c.calibrated_error for c in unseen]),
        measured_s=sum(one.measured_s for one in measured.configurations),
    )
    workspace.write(f"calibrations/{job.name}/{name}/calibration.json", calibration)
    return calibration


def calibration_id(job: Job, testbed: Testbed, request: CalibrationRequest) -> str:
    """Name of a calibration: a digest of all inputs of its measurements."""
    return f"calibration-{digest([job, testbed.name, testbed.cluster, request])[:12]}"


def measure(measurer: Measurer) -> MeasuredConfigurations:
    """All configurations of the request; the first measurement determines the others."""
    job, request = measurer.job, measurer.request
    tasks = one_task_each(job, measurer.testbed.limits, request)
    first = measurer.measure(0, tasks, None)
    _tell(measurer, 0, first)
    found, samples = [first], [read_samples(measurer.workspace, job.name, first.run)]
    larger = larger_ones(
        job,
        unit_costs(job, samples),
        first.source_rate_per_task,
        first.mst,
        measurer.testbed.limits,
        request,
    )
    fewest = len(job.scaled_operators)
    for i, parallelism in measurer.progress.track(enumerate(larger, 1), "calibrate", total=len(larger)):
        slots = sum(parallelism[o.name] for o in job.scaled_operators)
        one = measurer.measure(i, parallelism, first.mst * slots / fewest)
        _tell(measurer, i, one)
        found.append(one)
        samples.append(read_samples(measurer.workspace, job.name, one.run))
    return MeasuredConfigurations(found, samples)


def _tell(measurer: Measurer, number: int, one: MeasuredConfiguration) -> None:
    measurer.progress.say(
        f"calibrate: {number + 1} of {measurer.request.configurations}: {tasks_in_words(one.parallelism)} -> "
        f"{amount(one.mst)} records/s"
    )


def tasks_in_words(parallelism: dict[str, int]) -> str:
    """The operators with more than one task, and how many the others have."""
    more = [f"{name} {tasks}" for name, tasks in parallelism.items() if tasks > 1]
    return ", ".join(more) + (", others 1" if len(more) < len(parallelism) else "")


def _compare(
    uncalibrated: Simulation,
    calibrated: Simulation,
    request: CalibrationRequest,
    one: MeasuredConfiguration,
    role: Role,
) -> CalibratedMst:
    before, after = (
        predicted_mst(by, one.parallelism, one.memory_mb, request.mst) for by in (uncalibrated, calibrated)
    )
    return CalibratedMst(
        role=role,
        parallelism=one.parallelism,
        memory_mb=one.memory_mb,
        measured=one.mst,
        uncalibrated=before,
        calibrated=after,
        uncalibrated_error=relative_error(before, one.mst),
        calibrated_error=relative_error(after, one.mst),
    )
