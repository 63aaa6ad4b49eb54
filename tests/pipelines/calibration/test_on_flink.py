"""One measurement of a calibration on a real Flink, whose operators state what they cost: that is what must come out."""

from pathlib import Path

import pytest

from models.capacity.mst import MstSettings
from models.cluster import Cluster
from models.job import Job
from pipelines.calibration.configurations import one_task_each
from pipelines.calibration.fitting import fit
from pipelines.calibration.measuring import Measurer
from pipelines.calibration.prediction import Simulation, predicted_mst
from pipelines.calibration.request import CalibrationRequest
from pipelines.progress import Quiet
from pipelines.store.samples import read_samples
from pipelines.store.workspace import Workspace
from testbeds.flink.testbed import FlinkTestbed
from testbeds.simulator.settings import Physics
from testbeds.suite import small_job

CORES = 0.25
CLUSTER = Cluster.model_validate({"name": "local", "count": 2, "slots": 2, "cores": CORES, "memory_mb": 1024})
# `count` has a worker for itself: 2 ms for every second record.
MST = 2 * CORES / 2e-3


def slow_job() -> Job:
    """So slow that a busy machine keeps up, in records so large that buffers hold little of its work."""
    operators = []
    for o in small_job().operators:
        bytes_out = 10_000.0 if o.cost.bytes_out else 0.0
        cost = o.cost.model_copy(update={"cpu_s": 100 * o.cost.cpu_s, "bytes_out": bytes_out})
        operators.append(o.model_copy(update={"cost": cost}))
    return small_job().model_copy(update={"operators": tuple(operators)})


@pytest.mark.slow
def test_stated_costs_and_budgets_are_found_again(tmp_path: Path) -> None:
    # Two targets are enough, a step of 20 % apart; where others disturb the machine it may take more.
    search = MstSettings(
        warmup_s=5.0, cooldown_s=5.0, ramp_s=5.0, observe_s=5.0, iterations=7, sensitivity=0.17, bracket=0.2
    )
    request = CalibrationRequest(memory_mb=1024.0, mst=search, rehearsal_s=0.0)
    job, workspace = slow_job(), Workspace(tmp_path)
    with FlinkTestbed(CLUSTER, [1024.0]) as testbed:
        measurer = Measurer(job, testbed, request, workspace, Quiet(), "calibration-test")
        measured = measurer.measure(0, one_task_each(job, testbed.limits, request), None)
    samples = read_samples(workspace, job.name, measured.run)
    believed = Simulation(job, CLUSTER, Physics(source_burst_s=testbed.limits.source_burst_s))
    fitted, factor = fit(believed, [measured], [samples], request, "a Flink of this machine")
    # A machine that is busy serves less than the budgets, never more.
    assert measured.mst <= 1.15 * MST
    assert fitted.cluster.workers[0].cores <= 1.1 * CORES  # type: ignore[operator]
    for name in ("map", "count"):
        found = fitted.job.operator(name).cost.cpu_s / factor
        assert found == pytest.approx(job.operator(name).cost.cpu_s, rel=0.1)
    assert fitted.job.operator("map").selectivity == pytest.approx(0.5, rel=0.05)
    predicted = predicted_mst(fitted, measured.parallelism, 1024.0, search)
    assert predicted == pytest.approx(measured.mst, rel=0.05)
