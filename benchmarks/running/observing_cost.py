"""What observing a large job costs its JobManager, and how long a reading takes.

    python -m benchmarks.running.observing_cost [--flink-version 2.3] [--vertices 100] [--parallelism 10] [--seconds 180]
        [--before 30]

Starts a Flink with the job of `wide_job/`, whose records come so slowly that its tasks do next to nothing, and Flink's
default refresh of metrics. The JobManager's CPU is read from its JVM, first while only that is done, and then while the job is
observed as `sluice observe` does; with `--before`, after so many readings, by which its code for them is compiled.
"""

import argparse
import statistics
import tempfile
import time
import zipfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from flink_client.metrics.counts import CountsReader
from flink_client.rest.answers import numbers
from flink_client.rest.client import FlinkRest
from flink_client.rest.jars import JarProgram
from models.capacity.observed.counters.counts import JobCounts
from pipelines.observe.observation import observe_job
from pipelines.observe.watching import REFRESHED_S
from pipelines.progress import Quiet
from pipelines.store.workspace import Workspace
from testbeds.flink.local.distribution import RELEASES, flink_home
from testbeds.flink.local.processes import LocalCluster
from testbeds.flink.local.profile import Profile, TaskManager
from testbeds.local.javac import compile_java
from testbeds.local.jdk import find_jdk

HERE: Final = Path(__file__).parent / "wide_job"
TASK_MANAGERS: Final = 4
BETWEEN_RECORDS_MS: Final = 500
SETTLE_S: Final = 30.0
START_S: Final = 600.0
REFRESH_S: Final = 11.0
READINGS: Final = 5
_CPU: Final = "Status.JVM.CPU.Time"
SETTINGS: Final = {
    "metrics.fetcher.update-interval": "10000",
    "web.refresh-interval": "3000",
    "state.backend.type": "hashmap",
    # A thousand tasks on one machine: less memory for each.
    "taskmanager.memory.segment-size": "4kb",
    "taskmanager.network.memory.floating-buffers-per-gate": "2",
    "heartbeat.timeout": "180000",
}


def built(folder: Path, home: Path) -> Path:
    """The job's jar."""
    classes, made = folder / "classes", folder / "wide-job.jar"
    compile_java(sorted((HERE / "java").glob("*.java")), classes, f"{home / 'lib'}/*", find_jdk())
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as out:
        for path in sorted(classes.rglob("*.class")):
            out.write(path, str(path.relative_to(classes)))
    return made


def cpu_s(rest: FlinkRest) -> float:
    """Of the JobManager's JVM."""
    return numbers(rest.get(f"/jobmanager/metrics?get={_CPU}"))[_CPU] / 1e9


def cores(rest: FlinkRest, meanwhile: Callable[[], None]) -> float:
    """Cores that the JobManager uses while something is done."""
    began, before = time.monotonic(), cpu_s(rest)
    meanwhile()
    return (cpu_s(rest) - before) / (time.monotonic() - began)


class TimedReader(CountsReader):
    """Notes how long readings take."""

    def __init__(self, rest: FlinkRest, job: str) -> None:
        super().__init__(rest, job)
        self.took_s: list[float] = []

    def read(self, *, workers: bool) -> JobCounts:
        began = time.monotonic()
        found = super().read(workers=workers)
        self.took_s.append(time.monotonic() - began)
        return found


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--flink-version", choices=tuple(RELEASES), default="1.20")
    parser.add_argument("--vertices", type=int, default=100)
    parser.add_argument("--parallelism", type=int, default=10)
    parser.add_argument("--seconds", type=float, default=180.0)
    parser.add_argument("--before", type=int, default=0)
    options = parser.parse_args(arguments)
    release = RELEASES[options.flink_version]
    slots = -(-options.parallelism // TASK_MANAGERS)
    profile = Profile(tuple(TaskManager(f"tm{i}", slots, 1200.0) for i in range(TASK_MANAGERS)), SETTINGS)
    with tempfile.TemporaryDirectory() as folder, LocalCluster(release=release) as cluster:
        cluster.ensure(profile)
        rest = cluster.rest
        program = JarProgram(
            "WideJob",
            (str(options.vertices), str(BETWEEN_RECORDS_MS)),
            # Each task has a thread that flushes its output ten times a second by default.
            {"parallelism.default": str(options.parallelism), "execution.buffer-timeout.interval": "5 s"},
        )
        job = rest.run(rest.upload(built(Path(folder), flink_home(release=release))), program)
        rest.wait_until_running(job, START_S)
        time.sleep(SETTLE_S)
        idle = cores(rest, lambda: time.sleep(options.seconds))
        workspace, reader = Workspace(Path(folder) / "workspace"), TimedReader(rest, job)
        costs = [_reading_cpu_s(rest, reader) for _ in range(options.before)]
        seen = cores(rest, lambda: _observed(rest, job, options.seconds, workspace))
        costs += [_reading_cpu_s(rest, reader) for _ in range(READINGS)]
        vertices = rest.job(job).vertices
        print(f"Flink {release.version}, {len(vertices)} vertices, {sum(v.parallelism for v in vertices)} tasks")
        print(f"JobManager: {idle:.2%} of a core beside, {seen:.2%} while observed: {seen - idle:+.2%}")
        print(f"CPU of the JobManager from one reading to the next: {', '.join(f'{one:.2f} s' for one in costs)}")
        print(f"a reading: {statistics.median(reader.took_s):.2f} s in the median, {max(reader.took_s):.2f} s at most")
        rest.cancel(job)


def _reading_cpu_s(rest: FlinkRest, reader: TimedReader) -> float:
    """Of the JobManager, until it would refresh its metrics again."""
    before = cpu_s(rest)
    reader.refresh()
    time.sleep(REFRESHED_S)
    reader.read(workers=True)
    time.sleep(REFRESH_S - REFRESHED_S)
    return cpu_s(rest) - before


def _observed(rest: FlinkRest, job: str, seconds: float, workspace: Workspace) -> None:
    observe_job(rest, job, seconds, workspace, Quiet())


if __name__ == "__main__":
    main()
