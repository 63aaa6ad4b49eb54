"""The autoscaler of the Flink Kubernetes operator itself, acting on jobs of any Flink: its jar, and a loop around it."""

import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from pydantic import JsonValue

from benchmarks.autopilot.acting import FACTOR
from models.errors import SluiceError
from testbeds.flink.local.distribution import flink_home
from testbeds.flink.local.kit import kit_jar
from testbeds.local.java_process import end, start_java
from testbeds.local.javac import compile_java
from testbeds.local.jdk import find_jdk
from testbeds.local.maven import jars

HERE: Final = Path(__file__).parent
RELEASE: Final = "1.10.0"
_PREFIX: Final = "job.autoscaler."
_DEFAULTS: Final[dict[str, JsonValue]] = {
    "scale-down.interval": 3600.0,
    "backlog-processing.lag-threshold": 300.0,
    "observed-true-processing-rate.lag-threshold": 30.0,
}
"""Its own, which are to be compressed as well."""
_SECONDS: Final = frozenset(
    {"metrics.window", "stabilization.interval", "restart.time", "catch-up.duration", *_DEFAULTS}
)
"""Settings that are times of the workload, in seconds; what else there is has no unit of time."""
_OTHER_NAMES: Final = {"utilization.target": "target.utilization"}
"""What this release calls settings that have another name since."""
FLAGS: Final = ("-Xmx256m", "-XX:+UseSerialGC")
LOGGED: Final = "-Dorg.apache.logging.log4j.level=INFO"
"""Its reasons."""
INTERVAL: Final = "kubernetes.operator.reconcile.interval"


def in_real_time(settings: Mapping[str, JsonValue]) -> dict[str, str]:
    """Settings of the original, in the time that it measures: that of the machine.

    Args:
        settings: without the prefix; times are seconds of the workload.
    """
    made = {"enabled": "true"}
    for name, value in (_DEFAULTS | dict(settings)).items():
        if name != INTERVAL:
            made[_OTHER_NAMES.get(name, name)] = (
                f"{_number(name, value) / FACTOR * 1000:.0f} ms" if name in _SECONDS else str(value)
            )
    return {_PREFIX + name: value for name, value in made.items()}


def _number(name: str, value: JsonValue) -> float:
    if not isinstance(value, (int, float)):
        raise SluiceError(f"{name} must be seconds of the workload, but got {value!r}")
    return float(value)


@contextmanager
def operator_autoscaler(
    url: str, settings: Mapping[str, Mapping[str, JsonValue]], folder: Path, log: Path
) -> Iterator[None]:
    """Lets it act on jobs until the end of the block; it must still run then.

    Args:
        url: REST address of the Flink.
        settings: by the job's id, times in seconds of the workload. All have the same interval.
        folder: for what is compiled and written.
        log: takes what it prints.
    """
    (every_s,) = {_number(INTERVAL, one[INTERVAL]) for one in settings.values()}
    asked = folder / "jobs"
    path = _class_path(folder)
    asked.mkdir()
    for job, one in settings.items():
        lines = (f"{name}: {value}\n" for name, value in in_real_time(one).items())
        (asked / job).write_text("".join(lines), encoding="utf-8")
    program = ["OperatorAutoscaler", url, f"{every_s / FACTOR * 1000:.0f}", str(asked)]
    process = start_java(find_jdk(), [*FLAGS, LOGGED, "-cp", path], program, log, {})
    try:
        yield
        if (code := process.poll()) is not None:
            raise SluiceError(f"the operator's autoscaler ended with code {code}; see {log}")
    finally:
        end(process)


@contextmanager
def original(settings: Mapping[str, JsonValue], folder: Path) -> Iterator["subprocess.Popen[str]"]:
    """The original on metrics and a clock that are given: a line in for each round, a line out (`SameMetrics.java`).

    Args:
        settings: without the prefix, times with their unit.
        folder: for what is compiled.
    """
    flags = [*FLAGS, "-cp", _class_path(folder)]
    with subprocess.Popen(
        [str(find_jdk() / "bin" / "java"), *flags, "org.apache.flink.autoscaler.SameMetrics"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdin is not None
        process.stdin.write(f"{_PREFIX}enabled=true\n")
        for name, value in settings.items():
            process.stdin.write(f"{_PREFIX}{_OTHER_NAMES.get(name, name)}={value}\n")
        process.stdin.write("\n")
        yield process
        process.stdin.close()


def _class_path(folder: Path) -> str:
    """What is written here, compiled; the original's jar, which has changed classes of Flink, and so comes before it."""
    home, jdk, classes = flink_home(), find_jdk(), folder / "classes"
    path = f"{jars(HERE / 'operator-autoscaler.pom.xml', 'this benchmark')}/*:{home / 'lib'}/*"
    if not classes.exists():
        compile_java(sorted((HERE / "java").rglob("*.java")), classes, path, jdk)
    return f"{classes}:{path}:{kit_jar(home, jdk)}"
