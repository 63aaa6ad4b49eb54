"""A Flink with the program, beside work of low priority on every processor."""

import subprocess
import tempfile
import time
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from benchmarks.flink.burning_job.shapes import Shape
from flink_client.rest.client import FlinkRest
from flink_client.rest.jars import JarProgram
from testbeds.flink.local.distribution import Release, flink_home
from testbeds.flink.local.processes import LocalCluster
from testbeds.flink.local.profile import Profile, TaskManager
from testbeds.local.javac import compile_java
from testbeds.local.jdk import find_jdk

HERE: Final = Path(__file__).parent
COMPILE_S, SETTLE_S, START_S = 15.0, 30.0, 180.0
LOW_PRIORITY: Final = 19


@dataclass(frozen=True)
class Lab:
    """A running cluster with the program."""

    cluster: LocalCluster
    jar: str

    @property
    def rest(self) -> FlinkRest:
        return self.cluster.rest

    def program(self, shape: Shape, parallelism: Mapping[str, int]) -> JarProgram:
        return JarProgram("BurningJob", (shape.name, *(v.argument(parallelism[v.name]) for v in shape.vertices)), {})

    def ids(self, program: JarProgram, shape: Shape) -> dict[str, str]:
        """Flink's id of each vertex."""
        planned = self.rest.plan(self.jar, program)[0]
        return {v.name: next(one.id for one in planned if v.name in one.name) for v in shape.vertices}

    @contextmanager
    def running(self, program: JarProgram) -> Iterator[str]:
        job = self.rest.run(self.jar, program)
        try:
            self.rest.wait_until_running(job, START_S)
            yield job
        finally:
            self.rest.cancel(job)


@contextmanager
def lab(release: Release, workers: Sequence[TaskManager], settings: Mapping[str, str], hooked: bool) -> Iterator[Lab]:
    with tempfile.TemporaryDirectory() as folder, LocalCluster(release=release, hooked=hooked) as cluster:
        jar = _built(Path(folder), release)
        with _neighbour(jar):
            cluster.ensure(Profile(tuple(workers), settings))
            assert cluster.has_cpu_quotas, "control groups cannot be written here, so that nothing would limit the CPU"
            yield Lab(cluster, cluster.rest.upload(jar))


@contextmanager
def _neighbour(jar: Path) -> Iterator[None]:
    """Work of low priority on every processor."""
    command = [
        "nice",
        "-n",
        f"{LOW_PRIORITY}",
        str(find_jdk() / "bin" / "java"),
        "-Xmx8m",
        "-cp",
        str(jar),
        "Neighbour",
    ]
    process = subprocess.Popen(command, stdin=subprocess.PIPE)
    try:
        yield
    finally:
        process.kill()
        process.communicate()


def _built(folder: Path, release: Release) -> Path:
    home = flink_home(release=release)
    compile_java(sorted((HERE / "java").glob("*.java")), folder / "classes", f"{home}/lib/*", find_jdk())
    made = folder / "burning-job.jar"
    with zipfile.ZipFile(made, "w") as jar:
        for path in sorted((folder / "classes").rglob("*.class")):
            jar.write(path, str(path.relative_to(folder / "classes")))
    return made


def compile_on(lab: Lab, shape: Shape, slots: int) -> None:
    """Let every JVM compile what a record passes, by many light records on all slots: of heavy ones few pass in minutes."""
    light = replace(shape, vertices=tuple(replace(v, rounds=1) for v in shape.vertices))
    with lab.running(lab.program(light, dict.fromkeys(shape.parallelism, slots))):
        lab.cluster.limit_cpu(True)  # so that it goes before other work; compilers are exempt
        time.sleep(COMPILE_S)
