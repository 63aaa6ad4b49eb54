"""The autoscaler of the Flink Kubernetes operator itself, acting on jobs of any Flink: its jar, and a loop around it."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from pydantic import JsonValue

from acting import FACTOR
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
_SECONDS: Final = frozenset(
    {"metrics.window", "stabilization.interval", "scale-down.interval", "restart.time", "catch-up.duration"}
)
"""Settings that are times of the workload, in seconds; what else there is has no unit of time."""
_OTHER_NAMES: Final = {"utilization.target": "target.utilization"}
"""What this release calls settings that have another name since."""
LOGGED: Final = "-Dorg.apache.logging.log4j.level=INFO"
"""Its reasons."""
INTERVAL: Final = "kubernetes.operator.reconcile.interval"


def in_real_time(settings: Mapping[str, JsonValue]) -> dict[str, str]:
    """Settings of the original, in the time that it measures: that of the machine.

    Args:
        settings: without the prefix; times are seconds of the workload.
    """
    made = {"enabled": "true"}
    for name, value in settings.items():
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
    home, jdk, classes, asked = flink_home(), find_jdk(), folder / "classes", folder / "jobs"
    # Its jar has classes of Flink's that it changed, so it comes first.
    path = f"{jars(HERE / 'operator-autoscaler.pom.xml', 'this benchmark')}/*:{home / 'lib'}/*"
    compile_java([HERE / "java" / "OperatorAutoscaler.java"], classes, path, jdk)
    asked.mkdir()
    for job, one in settings.items():
        lines = (f"{name}: {value}\n" for name, value in in_real_time(one).items())
        (asked / job).write_text("".join(lines), encoding="utf-8")
    flags = ["-Xmx256m", "-XX:+UseSerialGC", LOGGED, "-cp", f"{classes}:{path}:{kit_jar(home, jdk)}"]
    program = ["OperatorAutoscaler", url, f"{every_s / FACTOR * 1000:.0f}", str(asked)]
    process = start_java(jdk, flags, program, log, {})
    try:
        yield
        if (code := process.poll()) is not None:
            raise SluiceError(f"the operator's autoscaler ended with code {code}; see {log}")
    finally:
        end(process)
