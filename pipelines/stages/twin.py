"""Stage `twin`: what the simulator, with the figures seen while the job was measured, predicts of its MST at any size.

The twin has nothing of the job's file but its dataflow: costs, selectivities, bytes, state and keys are those that
samples show.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final, Literal

from pydantic import Field

from models.capacity.calibration import cores_for_tasks
from models.capacity.growth.twin import TwinCurve
from models.capacity.twin.job import OperatorSeen, twin_job
from models.capacity.twin.keys import keys_recorded
from models.cluster import Cluster, Worker
from models.errors import SluiceError
from models.job import Job, Keys
from models.keys.groups import key_groups
from models.schema import SCHEMA_VERSION, Format
from pipelines.calibration.figures import saturated_windows
from pipelines.inputs.catalogue import load_cluster
from pipelines.keys.inputs import PARALLELISM
from pipelines.measuring.exploration_record import EXPLORATION_FILE, ExplorationRecord
from pipelines.measuring.flink import CLUSTER, flink_address
from pipelines.measuring.testbeds import TEST_CLUSTER, measuring
from pipelines.planning.gathering import gather_keys
from pipelines.run import PipelineRun
from pipelines.stages.check import verified_samples
from pipelines.stages.profile import PROFILE_FILE, ProfileRecord
from pipelines.store.digests import digest
from pipelines.store.samples import read_samples
from pipelines.twin.climbing import Climb
from pipelines.twin.rungs import Ladder, Rung
from pipelines.twin.seen import MeasuredRun, SeenOn, largest, seen_of, waits_seen
from pipelines.twin.simulation import Twin, machine_of_twin
from testbeds.simulator.settings import Physics

TWIN_FILE: Final = "twin.json"
MOST_SLOTS: Final = 4096
"""Simulated where the cluster states no number of workers."""
VERSION: Final = "9"
"""Version of the twin: increase it when it predicts otherwise, so that finished runs make theirs again."""


class TwinRecord(Format):
    """The twin of a run's job, and what it predicts."""

    schema_version: Literal[1] = SCHEMA_VERSION
    job: Job | None = Field(
        description="What is simulated, with the figures that were seen; null if they do not suffice."
    )
    worker: Worker | None = Field(description="One of the workers it is simulated on.")
    rungs: tuple[Rung, ...] = Field(description="The sizes that were simulated.")
    curve: TwinCurve | None = Field(description="MST at any size; null where the twin cannot be simulated.")
    reason: str = Field(description="Why there is no curve, or what it was made of.")


def twin(run: PipelineRun, also: Sequence[int] = ()) -> str:
    """Make the run's twin and simulate it.

    Args:
        also: sizes to simulate beside those that the answer needs.

    Returns:
        The URI of `twin.json`, or of the request where no twin is wanted.
    """
    if not run.request.wants_twin:
        run.progress.say("twin: nothing to do, since the request leaves it out")
        return run.workspace.uri(run.key("request.json"))
    exploration = run.output(EXPLORATION_FILE, ExplorationRecord)
    profile = run.output(PROFILE_FILE, ProfileRecord)
    cluster, machine = _testbed(run, exploration.slots_per_worker)
    inputs = {
        "exploration": digest(exploration),
        "profile": digest(profile),
        "job": digest(run.job),
        "testbed": digest([cluster, machine]),
        "samples": digest(verified_samples(run)),
        "asked": digest([_most_slots(run), run.request.rate, run.request.risk, run.request.headroom, sorted(also)]),
        "version": VERSION,
    }
    if run.request.catch_up > 1:
        inputs["asked"] = digest([inputs["asked"], run.request.catch_up])
    if (workers := _production_workers(run, cluster)) > 1:
        inputs["production workers"] = str(workers)
    if recorded := _recorded(run):
        inputs["recorded keys"] = digest(recorded)
    key = run.key(TWIN_FILE)
    record = run.workspace.once(key, inputs, TwinRecord, lambda: _made(run, exploration, profile, inputs, also))
    run.progress.say(f"twin: {record.reason}")
    return run.workspace.uri(key)


def twin_of(run: PipelineRun) -> TwinRecord | None:
    """The run's twin; None where it has none."""
    return run.output(TWIN_FILE, TwinRecord) if run.request.wants_twin else None


def twin_to_serve(run: PipelineRun) -> Twin:
    """The run's twin, to be simulated with other tasks or other rates than its record has.

    Raises:
        SluiceError: the run has none.
    """
    record = twin_of(run)
    if record is None or record.job is None or record.worker is None:
        raise SluiceError("there is no twin" if record is None else record.reason)
    exploration, profile = run.output(EXPLORATION_FILE, ExplorationRecord), run.output(PROFILE_FILE, ProfileRecord)
    cluster, machine = _testbed(run, exploration.slots_per_worker)
    return Twin(record.job, record.worker, machine, profile.source_rate_per_task, _production_workers(run, cluster))


def _made(
    run: PipelineRun,
    exploration: ExplorationRecord,
    profile: ProfileRecord,
    inputs: dict[str, str],
    also: Sequence[int],
) -> TwinRecord:
    cluster, machine = _testbed(run, exploration.slots_per_worker)
    chosen = largest(exploration.observations)
    runs = [MeasuredRun(o, read_samples(run.workspace, run.job.name, o.run)) for o in chosen]
    origin = f"seen in {', '.join(o.run for o in chosen)}"
    job, worker, rows, curve = None, None, list[list[Rung]](), None
    try:
        names = _sharing(run, cluster)
        on = SeenOn(cluster.workers[0], names, exploration.slots_per_worker, machine)
        waits = waits_seen(run.job, runs, read_samples(run.workspace, run.job.name, profile.run), on)
        worker = _worker(cluster, runs, names, waits, quota=run.request.testbed == "flink")
        seen = seen_of(run.job, runs, replace(on, worker=worker), _recorded(run), waits)
        job = twin_job(run.job, seen, origin)
        made = Twin(job, worker, machine, profile.source_rate_per_task, _production_workers(run, cluster))
        without = {key: value for key, value in inputs.items() if key != "asked"}
        workers = math.ceil(max(o.task_slots for o in exploration.observations) / worker.slots)
        ladder = Ladder(run, made, without, measuring(run).mst, max(workers, len(cluster.workers)))
        climb = Climb(ladder, exploration, job, _most_slots(run))
        rows, curve = climb.climbed(_levels(exploration, seen), also)
    except SluiceError as error:
        return TwinRecord(job=job, worker=worker, rungs=(), curve=None, reason=f"there is no twin: {error}")
    rungs = tuple(rung for row in rows for rung in row)
    if curve is None:
        reason = "there is no twin, since the simulator sustains no rate with the figures seen"
    else:
        reason = f"{len(rungs)} sizes of {curve.task_slots[0]:g} to {curve.task_slots[-1]:g} task slots, {origin}"
    return TwinRecord(job=job, worker=worker, rungs=rungs, curve=curve, reason=reason)


def _recorded(run: PipelineRun) -> dict[str, Keys]:
    """Keys of the operators whose input streams are recorded."""
    groups = run.job.key_groups or max(key_groups(p) for p in PARALLELISM)
    known = {one.operator: one.distribution for one in gather_keys(run)}
    return {name: keys_recorded(of, groups) for name, of in known.items() if of is not None}


def _levels(exploration: ExplorationRecord, seen: Mapping[str, OperatorSeen]) -> list[float]:
    """Memory sizes to simulate: the least and the most measured, or the most alone where all state fits any."""
    levels = sorted({o.memory_mb for o in exploration.observations})
    fits = all(one.live_bytes_per_record == 0 and one.key_bytes == 0 for one in seen.values())
    return levels[-1:] if fits else sorted({levels[0], levels[-1]})


def _most_slots(run: PipelineRun) -> int:
    """Of the cluster; kinds of workers that are offered have no bound of their own."""
    return run.cluster.slots if isinstance(run.cluster, Cluster) else MOST_SLOTS


def _testbed(run: PipelineRun, slots_per_worker: int) -> tuple[Cluster, Physics]:
    """The cluster that was measured on, as its file says, and the simulator's constants beside it."""
    if run.request.testbed == "simulator":
        return load_cluster(TEST_CLUSTER), machine_of_twin(Physics())
    machine = Physics(source_burst_s="all")
    # Waiting for flushes is in the measured costs there.
    state = machine.state.model_copy(update={"flush_s": 0.0})
    machine = machine_of_twin(machine.model_copy(update={"state": state}))
    if flink_address(run.request.flink, run.cluster) is None:
        return load_cluster(CLUSTER), machine
    if run.request.flink is None and isinstance(run.cluster, Cluster):
        return run.cluster, machine
    return Cluster(name="flink", workers=(Worker(name="tm-1", slots=slots_per_worker),)), machine


def _production_workers(run: PipelineRun, testbed: Cluster) -> int:
    """Where tasks share cores, those that a plan uses matter: all of a cluster, few of workers that are offered."""
    worker = testbed.workers[0]
    shares = worker.cores is not None and worker.cores < worker.slots
    return len(run.cluster.workers) if shares and isinstance(run.cluster, Cluster) else 1


def _sharing(run: PipelineRun, cluster: Cluster) -> set[str] | None:
    """Workers whose cores tasks share; None: all. Where Sluice starts the testbed, sources have workers of their own."""
    started = run.request.testbed == "simulator" or flink_address(run.request.flink, run.cluster) is None
    return {w.name for w in cluster.workers} if started else None


def _worker(
    cluster: Cluster, runs: Sequence[MeasuredRun], names: set[str] | None, waits: Mapping[str, float], quota: bool
) -> Worker:
    """A worker, with the cores that tasks got of it if they were short of them.

    Args:
        waits: of operators outside the job, seconds per record in.
        quota: whether TaskManagers are held to the cores of the cluster file.
    """
    saturated = [w for one in runs for w in saturated_windows(one.samples, names)]
    worker = cluster.workers[0]
    limit = worker.cores if quota else None
    cores = cores_for_tasks(saturated, state_waits=True, quota=limit, external_wait_s=waits)
    return worker if cores is None else worker.model_copy(update={"cores": cores})
