"""What was seen of a job's operators while it was measured, for its twin."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from models.capacity.calibration import NO_WAITS, WorkerWindow
from models.capacity.observation import Observation
from models.capacity.twin.job import OperatorSeen, fires_every_s, live_s
from models.capacity.twin.keys import TaskRecords, keys_seen
from models.capacity.twin.state import fire_share, state_bytes
from models.capacity.twin.waits import WindowOn, cores_known, external_wait_s
from models.cluster import Worker
from models.dataflow import Partitioning
from models.job import Cost, Job, Keys, Kind, Operator
from models.resources.memory import managed_memory_per_slot_mb
from pipelines.calibration.figures import OBSERVED, OperatorFigures, figures, settled_windows
from pipelines.calibration.fitting import loaded_windows, unit_costs
from testbeds.simulator.layout.buffers import BYTES_PER_MB
from testbeds.simulator.layout.memory import cache_mb, write_buffer_mb
from testbeds.simulator.settings import Physics

LARGEST: Final = 4
"""So many observations, those with the most slots: in small ones a record costs what it does at other loads."""

GUESS_WEIGHT: Final = 1.0
"""More than in a calibration: while windows fire, many worker windows are off together, which does not average out."""
NONE: Final[Mapping[str, Keys]] = {}
PROFILED: Final = "profile"
"""Phase of the profile, below saturation."""


@dataclass(frozen=True)
class MeasuredRun:
    """An observation with its samples."""

    observation: Observation
    samples: pa.Table


def largest(observations: Sequence[Observation]) -> list[Observation]:
    """Those that figures are taken from."""
    return sorted(observations, key=lambda o: (o.task_slots, o.memory_mb))[-LARGEST:]


@dataclass(frozen=True)
class SeenOn:
    """The machines that were measured on, as the twin's simulator has them."""

    worker: Worker
    """One of the equal workers."""
    names: Collection[str] | None
    """Of the workers whose cores tasks share; None: of all."""
    slots_per_worker: int
    """Slots that share the memory of one TaskManager."""
    machine: Physics

    def windows(self, samples: pa.Table, warm_up: bool) -> list[WorkerWindow]:
        """What workers did, had load not slowed their cores: the simulator does that again.

        Args:
            warm_up: whether to include it. While windows have not fired as often as records came, these seem cheaper.
        """
        return [self.at_full_speed(w) for w in (loaded_windows(samples) if warm_up else settled_windows(samples))]

    def at_full_speed(self, window: WorkerWindow) -> WorkerWindow:
        if self.worker.cores is None or not self._shares(window):
            return window
        return window.at_full_speed(self.worker.cores, self.machine.full_load_slowdown)

    def with_cores(self, windows: Sequence[WorkerWindow]) -> list[WindowOn]:
        """With the cores of the worker's file, or those seen in use where it states none."""
        cores = self.worker.cores
        stated = {w.worker: cores for w in windows if cores is not None and self._shares(w)}
        return cores_known(windows, stated)

    def _shares(self, window: WorkerWindow) -> bool:
        return self.names is None or window.worker in self.names

    def flush_s(self, write_bytes: float, memory_mb: float) -> float:
        """Time for which a record that writes so much state waits until the write buffer is flushed."""
        managed = managed_memory_per_slot_mb(memory_mb, self.slots_per_worker)
        buffer = write_buffer_mb(managed, self.machine.flink) * BYTES_PER_MB
        return self.machine.state.flush_s * write_bytes / buffer if buffer > 0 else 0.0


def waits_seen(job: Job, runs: Sequence[MeasuredRun], profile: pa.Table, on: SeenOn) -> dict[str, float]:
    """For how long a record makes its task wait outside the job, seconds per record in of every operator.

    Args:
        profile: samples of the profile, in which workers are the least busy.

    Raises:
        SluiceError: an operator took no records.
    """
    costs, average = _costs(job, [run.samples for run in runs], on)
    settled = [window for run in runs for window in settled_windows(run.samples)]
    windows = on.with_cores([on.at_full_speed(w) for w in [*settled, *settled_windows(profile, PROFILED)]])
    memory_mb = min(run.observation.memory_mb for run in runs)
    found = {}
    for name, cpu_s in costs.items():
        flush_s = on.flush_s(average.state_write_bytes[name], memory_mb)
        found[name] = external_wait_s(windows, cpu_s + flush_s, average.cpu_s[name] + flush_s, name)
    return found


def seen_of(
    job: Job,
    runs: Sequence[MeasuredRun],
    on: SeenOn,
    recorded: Mapping[str, Keys] = NONE,
    waits: Mapping[str, float] = NO_WAITS,
) -> Mapping[str, OperatorSeen]:
    """Figures of every operator.

    Args:
        recorded: keys of operators whose input streams are recorded.
        waits: of operators outside the job, seconds per record in; 0 where absent.

    Raises:
        SluiceError: an operator took no records.
    """
    tables = [run.samples for run in runs]
    costs, average = _costs(job, tables, on)
    taken = _taken(job, tables)
    settled = [run.samples.filter(pc.field("phase") == OBSERVED).to_pandas() for run in runs]
    return {
        o.name: _operator(
            job,
            o,
            Cost(cpu_s=costs[o.name], external_wait_s=waits.get(o.name, 0.0)),
            average,
            taken,
            _Own(o.name, runs, settled, on, recorded.get(o.name)),
        )
        for o in job.operators
    }


def _costs(job: Job, tables: Sequence[pa.Table], on: SeenOn) -> tuple[dict[str, float], OperatorFigures]:
    """CPU seconds per record of every operator, and what else a record does on average."""
    windows = partial(on.windows, warm_up=all(o.window is None for o in job.operators))
    return unit_costs(job, tables, windows, GUESS_WEIGHT), figures(job, pa.concat_tables(tables))


@dataclass(frozen=True)
class _Own:
    """The samples of one operator."""

    name: str
    runs: Sequence[MeasuredRun]
    settled: Sequence[pd.DataFrame]
    on: SeenOn
    recorded: Keys | None

    def frames(self) -> list[pd.DataFrame]:
        return [frame[frame["operator"] == self.name] for frame in self.settled]

    def task_records(self) -> list[TaskRecords]:
        """Of each run."""
        found = []
        for frame in self.frames():
            table = frame.pivot_table(
                index="time_s", columns="task", values="records_in", aggfunc="sum", fill_value=0.0
            )
            counts = table.to_numpy(dtype=np.float64)
            counts = counts[counts.sum(axis=1) > 0]
            if len(counts):
                found.append(TaskRecords(counts, float(frame["interval_s"].iloc[0])))
        return found

    def fire_share(self) -> float:
        samples = pd.concat(self.frames())
        cpu_s, into, out = (samples[c].to_numpy(np.float64) for c in ("cpu_s", "records_in", "records_out"))
        return fire_share(cpu_s, into, out)

    def task_state_bytes(self) -> list[tuple[float, float, int]]:
        """Of each run: bytes that a task reads again, records/s into it, and tasks."""
        found = []
        for run, frame in zip(self.runs, self.frames(), strict=True):
            hits, misses = float(frame["cache_hits"].sum()), float(frame["cache_misses"].sum())
            tasks, seconds = frame["task"].nunique(), float(frame["interval_s"].sum())
            if hits + misses <= 0 or seconds <= 0:
                continue
            managed = managed_memory_per_slot_mb(run.observation.memory_mb, self.on.slots_per_worker)
            machine = self.on.machine
            cache = max(cache_mb(managed, machine.flink) - machine.state.reserved_mb, 0.0) * BYTES_PER_MB
            again = state_bytes(hits / (hits + misses), cache, machine.state.cached_bytes_per_live_byte)
            found.append((again, float(frame["records_in"].sum()) / seconds, tasks))
        return found


def _operator(
    job: Job,
    operator: Operator,
    cost: Cost,
    average: OperatorFigures,
    taken: Mapping[str, float],
    own: _Own,
) -> OperatorSeen:
    name = operator.name
    default = 0.0 if operator.kind is Kind.SINK else 1.0
    hashed = any(e.partitioning is Partitioning.HASH for e in job.upstream_edges(name))
    keys = _keys(job, own) if hashed else None
    per_record, in_all = _state(operator, keys, own)
    return OperatorSeen(
        cpu_s=cost.cpu_s,
        external_wait_s=cost.external_wait_s,
        selectivity=average.selectivity.get(name, default),
        bytes_out=average.bytes_out.get(name, 0.0),
        state_read_bytes=average.state_read_bytes.get(name, 0.0),
        state_write_bytes=average.state_write_bytes.get(name, 0.0),
        fire_share=0.0 if operator.window is None else own.fire_share(),
        live_bytes_per_record=per_record,
        key_bytes=in_all,
        rate_share=taken.get(name, 1.0),
        keys=keys,
    )


def _keys(job: Job, own: _Own) -> Keys:
    """As recorded, else as tasks got them."""
    if own.recorded is not None:
        return own.recorded
    return keys_seen(own.task_records(), fires_every_s(job, own.name), job.key_groups)


def _state(operator: Operator, keys: Keys | None, own: _Own) -> tuple[float, float]:
    """Bytes of a live record that are read again, or of all keys where records stay for good; medians over the runs."""
    found, lives_s = own.task_state_bytes(), live_s(operator)
    if not found or all(again == 0 for again, _, _ in found):
        return 0.0, 0.0
    if lives_s is None:
        return 0.0, float(np.median([again * tasks for again, _, tasks in found])) if keys is not None else 0.0
    return float(np.median([again / (rate * lives_s) for again, rate, _ in found if rate > 0])), 0.0


def _taken(job: Job, tables: Sequence[pa.Table]) -> dict[str, float]:
    """Each source's share of the records that all of them take in."""
    of_sources = [o.name for o in job.sources]
    sums = pa.concat_tables(tables).group_by("operator").aggregate([("records_in", "sum")]).to_pylist()
    totals = {row["operator"]: row["records_in_sum"] for row in sums if row["operator"] in of_sources}
    return {name: amount / sum(totals.values()) for name, amount in totals.items()}
