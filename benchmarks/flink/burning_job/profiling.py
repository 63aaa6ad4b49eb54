"""What a record takes at each vertex, each vertex alone on a TaskManager."""

import json
import tempfile
import time

from benchmarks.flink.burning_job.lab import COMPILE_S, SETTLE_S, compile_on, lab
from benchmarks.flink.burning_job.shapes import MEMORY_MB, Shape
from flink_client.metrics.readings import RestReadings
from flink_client.rest.client import FlinkRest
from models.job import Job
from models.plan.slots import PlacedTask
from models.schema import Format, NonNegative
from pipelines.observe.observation import observe_job
from pipelines.progress import Quiet
from pipelines.store.workspace import Workspace
from testbeds.flink.local.distribution import Release
from testbeds.flink.local.profile import TaskManager
from testbeds.flink.measuring.cpu_time import CpuMeter

PROFILE_S, IDLE_S = 30.0, 8.0
PROFILE_CORES, LEAST_CORES = 1.4, 0.2


class Profiled(Format):
    """What a record takes at each vertex, and a TaskManager without records."""

    job: Job
    idle_cores: NonNegative


def profiled(shape: Shape, release: Release) -> Profiled:
    """The job as observed with each vertex on a TaskManager of its own, with the names of `shape`.

    Quotas in proportion to what vertices hash, so that all are about equally busy, and under quotas as later. CPU time that a
    TaskManager takes without records is no record's: beside light vertices it would count as much as they do.
    """
    names, rounds = [v.name for v in shape.vertices], sum(v.rounds for v in shape.vertices)
    alone = [
        TaskManager(f"profile-{v.name}", 1, MEMORY_MB, cores=max(PROFILE_CORES * v.rounds / rounds, LEAST_CORES))
        for v in shape.vertices
    ]
    with lab(release, alone, {}, hooked=True) as started, tempfile.TemporaryDirectory() as folder:
        compile_on(started, shape, len(names))
        program = started.program(shape, dict.fromkeys(names, 1))
        ids = started.ids(program, shape)
        started.cluster.place([PlacedTask(ids[name], 0, f"profile-{name}", 0) for name in names])
        with started.running(program):
            time.sleep(COMPILE_S)
        idle = _idle_cores(started.rest)
        with started.running(program) as job:
            started.cluster.limit_cpu(True)
            time.sleep(SETTLE_S)
            observed = observe_job(started.rest, job, PROFILE_S, Workspace(folder), Quiet())
    text = observed.as_job().model_dump_json(by_alias=True)
    for id_, name in observed.operators.items():
        text = text.replace(f'"{name}"', f'"{next(known for known in names if ids[known] == id_)}"')
    document = json.loads(text)
    cores = {one.name: one.cores for one in observed.job.workers}
    rates = {one.id: one.observed_rate for one in observed.job.vertices}
    for operator in document["operators"]:
        used, rate = cores[f"profile-{operator['name']}"], rates[ids[operator["name"]]]
        assert used is not None and rate, f"nothing was seen of {operator['name']}; measure again"
        operator["cost"]["cpu_s"] = max(used - idle, 0.0) / rate
        if operator["kind"] != "sink":
            # What the program does. Observed while code is compiled, records in and out are of different seconds.
            operator["selectivity"] = 1.0
    return Profiled(job=Job.model_validate(document), idle_cores=idle)


def _idle_cores(rest: FlinkRest) -> float:
    """Cores that a TaskManager uses while no job runs: the least, since compilers may still run on others."""
    meter = CpuMeter(RestReadings(rest, ""), [one.id for one in rest.task_managers()])
    begin = time.monotonic() + 2.0
    while not meter.covers(begin, begin + IDLE_S):
        meter.read()
        time.sleep(0.3)
    return min(float(used[0]) for used in meter.increments([begin, begin + IDLE_S]).values()) / IDLE_S
