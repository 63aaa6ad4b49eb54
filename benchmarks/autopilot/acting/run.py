"""One run: a trace is fed to a topic, and jobs of one kind read it, each scaled by a contender. Kept as it ends."""

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from random import Random
from typing import Final

import pyarrow as pa
from pydantic import Field

from benchmarks.autopilot.acting import FACTOR
from benchmarks.autopilot.acting.contenders import BURN_IN_S, Contender
from benchmarks.autopilot.acting.jobs import PEAK_REAL, JobKind
from benchmarks.autopilot.acting.lab import Entered, acting_lab, real_sleep_until
from benchmarks.autopilot.acting.operator_autoscaler import operator_autoscaler
from benchmarks.autopilot.acting.recording import Recorder
from benchmarks.autopilot.acting.scores import ActingScores, scores
from benchmarks.autopilot.acting.traces import TRACES, compressed
from models.errors import SluiceError
from models.schema import Format
from pipelines.arena.replays.workloads import Workload
from pipelines.store.workspace import Workspace
from testbeds.flink.local.distribution import RELEASES
from testbeds.kafka.feeding.feeder import KafkaFeeder

FOLDER: Final = "acting"
SETTLE_REAL_S: Final = 15.0
"""Before the run: jobs start, and code is compiled."""
TAIL_REAL_S: Final = 5.0
SLOTS_EACH: Final = 28
"""Slots for each job, and the most that an autopilot may take: the others' are not free for long."""
PILOT: Final = "benchmarks.autopilot.acting.pilot"


@dataclass(frozen=True)
class Entry:
    """A job of a run."""

    kind: JobKind
    trace: str
    contender: Contender

    @property
    def name(self) -> str:
        return f"{self.contender.name}.{self.kind.name}.{self.trace}"


@dataclass(frozen=True)
class RunPlan:
    """What a run is made of, and so its name: each contender with each job and each trace, all at the same time."""

    flink: str
    kinds: Sequence[JobKind]
    traces: Sequence[str]
    contenders: Sequence[Contender]
    repetition: int

    @property
    def name(self) -> str:
        parts = (one for several in ([k.name for k in self.kinds], self.traces) for one in several)
        return "-".join((self.flink, *parts, str(self.repetition)))

    @property
    def seconds(self) -> float:
        """Of the workload's time."""
        return max(self.workload(trace).seconds for trace in self.traces)

    @staticmethod
    def workload(trace: str) -> Workload:
        """In its own time."""
        return TRACES[trace](PEAK_REAL / FACTOR)

    def entries(self) -> list[Entry]:
        """In random order."""
        found = [Entry(*one) for one in product(self.kinds, self.traces, self.contenders)]
        Random(self.repetition).shuffle(found)
        return found


class ActingRun(Format):
    """A run that has ended."""

    flink: str
    traces: tuple[str, ...]
    repetition: int
    began: str = Field(description="UTC.")
    scores: dict[str, ActingScores] = Field(description="By job: CONTENDER.KIND.TRACE.")
    cpu_busy: float = Field(description="Share of the machine's processors that was used during the run, 0-1.")
    feed_short: int = Field(description="Records that were due at the end and not written.")


def run_once(plan: RunPlan, workspace: Workspace) -> ActingRun:
    """The run, unless it is kept already."""
    key = f"{FOLDER}/{plan.name}/run.json"
    if workspace.exists(key):
        return workspace.read(key, ActingRun)
    made, series = _made(plan, workspace)
    for name, table in series.items():
        workspace.write_table(f"{FOLDER}/{plan.name}/{name}.parquet", table)
    workspace.write(key, made)
    return made


def _made(plan: RunPlan, workspace: Workspace) -> tuple[ActingRun, dict[str, pa.Table]]:
    entries = plan.entries()
    with acting_lab(RELEASES[plan.flink], SLOTS_EACH * len(entries)) as lab, lab.fed(plan.traces) as feeder:
        first = {trace: plan.workload(trace).rates[0] * FACTOR for trace in plan.traces}
        entered = [lab.enter(one.kind, one.name, one.trace, first[one.trace]) for one in entries]
        lab.wait_until_running(entered)
        feeder.offer(first)
        time.sleep(SETTLE_REAL_S)
        began, processors = time.gmtime(), _cpu()
        with Recorder(
            lab.rest.url, lab.broker.connection, [(e.trace, j) for e, j in zip(entries, entered, strict=True)]
        ) as recorder:
            acting = list(zip(entered, entries, strict=True))
            with (
                _pilot(plan, lab.rest.url, lab.broker.connection.bootstrap, acting, workspace),
                _originals(plan, lab.rest.url, acting, workspace),
            ):
                begin = time.monotonic()
                recorder.start(begin)
                _feed(plan, feeder, begin)
                time.sleep(TAIL_REAL_S)
                short = sum(feeder.report(trace).pending for trace in plan.traces)
            series = recorder.series()
    end_real_s = plan.seconds / FACTOR
    made = ActingRun(
        flink=plan.flink,
        traces=tuple(plan.traces),
        repetition=plan.repetition,
        began=time.strftime("%Y-%m-%d %H:%M:%S", began),
        scores={name: scores(table, BURN_IN_S / FACTOR, end_real_s) for name, table in series.items()},
        cpu_busy=_busy(processors, _cpu()),
        feed_short=short,
    )
    return made, series


def _feed(plan: RunPlan, feeder: KafkaFeeder, begin: float) -> None:
    """Until the workloads have ended; all have steps of the same length."""
    workloads = {trace: plan.workload(trace) for trace in plan.traces}
    step_real_s = next(iter(workloads.values())).step_s / FACTOR
    steps = round(plan.seconds / FACTOR / step_real_s)
    for step in range(steps):
        real_sleep_until(step * step_real_s, begin)
        at = (step + 0.5) * step_real_s
        feeder.offer({trace: compressed(workload, at) or 0.0 for trace, workload in workloads.items()})
    real_sleep_until(steps * step_real_s, begin)


@contextmanager
def _pilot(
    plan: RunPlan,
    url: str,
    bootstrap: str,
    entered: Sequence[tuple[Entered, Entry]],
    workspace: Workspace,
) -> Iterator[None]:
    """The process of the autopilots; it must still run when the block ends."""
    acting = [
        {
            "job": job.id,
            "name": job.name,
            "contender": one.contender.name,
            "peak_rate": plan.workload(one.trace).peak_rate,
        }
        for job, one in entered
        if not one.contender.original
    ]
    if not acting:
        yield
        return
    document = {
        "url": url,
        "bootstrap": bootstrap,
        "workspace": workspace.uri(FOLDER, plan.name, "autopilot"),
        "jobs": acting,
        "most_slots": SLOTS_EACH,
    }
    with tempfile.TemporaryDirectory() as folder:
        asked, log = Path(folder) / "asked.json", workspace.local_folder(FOLDER, plan.name) / "pilot.log"
        asked.write_text(json.dumps(document), encoding="utf-8")
        with log.open("wb") as out:
            process = subprocess.Popen(
                [sys.executable, "-m", PILOT, str(asked)], stdout=out, stderr=subprocess.STDOUT, process_group=0
            )
        try:
            yield
            if (code := process.poll()) is not None:
                raise SluiceError(f"the process of the autopilots ended with code {code}; see {log}")
        finally:
            process.terminate()
            process.wait()


@contextmanager
def _originals(
    plan: RunPlan, url: str, entered: Sequence[tuple[Entered, Entry]], workspace: Workspace
) -> Iterator[None]:
    """The process of the operator's own autoscaler, where a contender is that."""
    settings = {job.id: one.contender.settings for job, one in entered if one.contender.original}
    if not settings:
        yield
        return
    log = workspace.local_folder(FOLDER, plan.name) / "operator.log"
    with tempfile.TemporaryDirectory() as folder, operator_autoscaler(url, settings, Path(folder), log):
        yield


def _cpu() -> tuple[float, float]:
    """Seconds that all processors were busy, and in all."""
    fields = [float(n) for n in Path("/proc/stat").read_text(encoding="utf-8").splitlines()[0].split()[1:9]]
    ticks = os.sysconf("SC_CLK_TCK")
    return (sum(fields) - fields[3] - fields[4]) / ticks, sum(fields) / ticks


def _busy(before: tuple[float, float], after: tuple[float, float]) -> float:
    return (after[0] - before[0]) / max(after[1] - before[1], 1e-9)
