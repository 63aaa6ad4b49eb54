"""A Flink cluster as processes of this machine, which end with the process that started them."""

import secrets
import shutil
import subprocess
import time
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import yaml

from flink_client.metrics.readings import Readings, RestReadings
from flink_client.rest.client import FlinkRest
from flink_client.rest.waiting import wait_for
from models.closing import Closing
from models.errors import SluiceError
from models.plan.slots import PlacedTask
from testbeds.flink.lab.awake import Awake
from testbeds.flink.lab.cpu import CpuGroup, new_cpu_group, threads_named
from testbeds.flink.lab.stolen import is_stolen_from
from testbeds.flink.local.distribution import FLINK, Release, Report, flink_home
from testbeds.flink.local.folder import cluster_folder, remove_group
from testbeds.flink.local.kit import kit_jar
from testbeds.flink.local.profile import JOB_MANAGER_MB, Profile, TaskManager, cluster_settings, opened_modules
from testbeds.flink.placement_hook import PLACEMENT_FLAG, placement_text, write_placement
from testbeds.local.java_process import end, last_words, start_java
from testbeds.local.jdk import find_jdk
from testbeds.local.machine import LOOPBACK, check_memory, free_port

START_S: Final = 300.0
_STOP_S: Final = 5.0
_JOB_MANAGER: Final = "org.apache.flink.runtime.entrypoint.StandaloneSessionClusterEntrypoint"
_COMPILERS: Final = ("C1 Compiler", "C2 Compiler")
"""Threads of HotSpot."""
_TASK_MANAGER: Final = "org.apache.flink.runtime.taskexecutor.TaskManagerRunner"


@dataclass
class _Process:
    name: str
    popen: subprocess.Popen[bytes]
    log: Path
    group: CpuGroup | None = None
    cores: float | None = None


class LocalCluster(Closing):
    """A JobManager and TaskManagers on 127.0.0.1. The processes end with this one, even if that is killed.

        with LocalCluster() as cluster:
            cluster.ensure(profile)
            cluster.rest.task_managers()

    Its files (logs, state, checkpoints) are in a folder of the user's cache, which is removed with it; the next cluster
    removes folders left by killed processes.
    """

    def __init__(
        self, report: Report = lambda what, share: None, release: Release = FLINK, *, hooked: bool = True
    ) -> None:
        """
        Args:
            hooked: whether the JobManager places tasks by the kit's hook; else it is Flink as it comes.

        Raises:
            SluiceError: there is no Java, or Flink could not be fetched.
        """
        self._jdk = find_jdk()
        self._flink_home = flink_home(report, release)
        self.kit = kit_jar(self._flink_home, self._jdk, release)
        jars = [str(self.kit), f"{self._flink_home}/lib/*"]
        self._class_path = ":".join(jars if hooked else reversed(jars))  # of a class that both have, the first counts
        self._folder, self._owner = cluster_folder()
        self._processes: list[_Process] = []
        self._awake: Awake | None = None
        self._profile: Profile | None = None
        self._rest: FlinkRest | None = None
        self._jars: dict[Path, str] = {}

    @property
    def rest(self) -> FlinkRest:
        """The REST interface of the running cluster.

        Raises:
            SluiceError: nothing was started.
        """
        if self._rest is None:
            raise SluiceError("the local Flink cluster was not started; call `ensure` with a profile first")
        return self._rest

    @property
    def folder(self) -> Path:
        """The folder of its files, savepoints included."""
        return self._folder

    def uploaded(self, jar: Path) -> str:
        """Id of a jar on the cluster, uploaded at first use."""
        if jar not in self._jars:
            self._jars[jar] = self.rest.upload(jar)
        return self._jars[jar]

    def new_job_id(self) -> str:
        """A random one: jobs end with the cluster."""
        return secrets.token_hex(16)

    def data_path(self, file: Path) -> str:
        """The path itself: the TaskManagers read recorded files from this machine's disk."""
        return str(file)

    def readings(self, job: str) -> Readings:
        return RestReadings(self.rest, job)

    def place(self, tasks: Collection[PlacedTask]) -> None:
        """From now on place tasks, of vertices by id, like this; tasks that are not named go anywhere.

        Args:
            tasks: none: no placement.
        """
        slots = self._profile.slots if self._profile is not None and tasks else 0
        write_placement(self.placement_file, placement_text(slots, tasks))

    @property
    def placement_file(self) -> Path:
        """Read by the placement hook whenever tasks are scheduled."""
        return self._folder / "placement"

    @property
    def has_cpu_quotas(self) -> bool:
        """Whether the cores of TaskManagers are enforced; if not, only operators with stated costs respect them."""
        return all(one.group is not None for one in self._processes if one.cores is not None)

    def ensure(self, profile: Profile) -> None:
        """Start a cluster of this profile, unless it runs already.

        Raises:
            Infeasible: there is not enough memory for it.
            SluiceError: a process ended, or they were not ready in time; the message quotes their logs.
        """
        if self.runs(profile):
            return
        self.stop()
        check_memory(profile.memory_mb, "the Flink cluster", "ask for fewer or smaller TaskManagers")
        options = {one.name: one.options() for one in profile.task_managers}
        rest_port = free_port()
        self._write_settings(cluster_settings(profile, self._folder, free_port(), rest_port))
        try:
            self._processes.append(self._start("jobmanager", _JOB_MANAGER, _job_manager_flags(self.placement_file), {}))
            for one in profile.task_managers:
                process = self._start(one.name, _TASK_MANAGER, one.jvm_flags(), options[one.name])
                self._processes.append(process)
                _put_in_group(process, one, self._folder.name)
            self._rest = FlinkRest(f"http://{LOOPBACK}:{rest_port}")
            self._wait_until_ready(profile)
        except BaseException:
            self.stop()
            raise
        self._profile = profile

    @property
    def takes_savepoints(self) -> bool:
        return True

    def runs(self, profile: Profile) -> bool:
        """Whether a cluster of this profile runs, with all its processes."""
        return profile == self._profile and all(one.popen.poll() is None for one in self._processes)

    def check(self) -> None:
        """Raise if a process has ended.

        Raises:
            SluiceError: it names the process and the end of its log.
        """
        for one in self._processes:
            if one.popen.poll() is not None:
                raise SluiceError(
                    f"the Flink process {one.name} ended with code {one.popen.returncode}: {last_words(one.log)}"
                )

    def limit_cpu(self, limited: bool) -> None:
        """Switch the CPU quotas of TaskManagers on, after the JVMs have warmed up, or off.

        JIT compiler threads are exempt: their remaining work took up to half of a small quota for minutes, which a job that
        runs for days would not notice. Under a hypervisor, processors are kept from becoming idle meanwhile.
        """
        if self._awake is not None:
            self._awake.close()
        self._awake = Awake(self._jdk, self.kit) if limited and is_stolen_from() else None
        for one in self._processes:
            if one.group is not None:
                one.group.limit(one.cores if limited else None)
                for thread in threads_named(one.popen.pid, *_COMPILERS) if limited else ():
                    one.group.let_out(thread)

    def kill(self, name: str) -> None:
        """Kill a process, to test faults."""
        next(one for one in self._processes if one.name == name).popen.kill()

    def stop(self) -> None:
        """End all processes; may be called twice."""
        self.limit_cpu(False)
        for one in self._processes:
            one.popen.terminate()
        until = time.monotonic() + _STOP_S
        for one in self._processes:
            end(one.popen, until - time.monotonic())
            if one.group is not None:
                remove_group(one.group)
        if self._rest is not None:
            self._rest.close()
        self._processes, self._rest, self._profile, self._jars = [], None, None, {}

    def close(self) -> None:
        """Stop and remove its files."""
        self.stop()
        shutil.rmtree(self._folder, ignore_errors=True)
        self._owner.close()

    def _write_settings(self, settings: Mapping[str, str]) -> None:
        (self._folder / "conf").mkdir(exist_ok=True)
        (self._folder / "tmp").mkdir(exist_ok=True)
        (self._folder / "conf" / "config.yaml").write_text(yaml.safe_dump(dict(settings)), encoding="utf-8")
        self.placement_file.write_text("", encoding="utf-8")

    def _start(self, name: str, main: str, flags: list[str], options: Mapping[str, str]) -> _Process:
        log = self._folder / f"{name}.log"
        logging = self._flink_home / "conf" / "log4j.properties"
        java = [*flags, *opened_modules(self._flink_home), f"-Dlog.file={log}"]
        java += [f"-Dlog4j.configurationFile={logging.as_uri()}", "-cp", self._class_path]
        program = [main, "--configDir", str(self._folder / "conf")]
        for key, value in options.items():
            program += ["-D", f"{key}={value}"]
        plugins = {"FLINK_PLUGINS_DIR": str(self._flink_home / "plugins")}
        popen = start_java(self._jdk, java, program, self._folder / f"{name}.out", plugins)
        return _Process(name, popen, log)

    def _wait_until_ready(self, profile: Profile) -> None:
        ready = FlinkRest(self.rest.url, patience_s=0)

        def registered() -> bool | None:
            self.check()
            try:
                return sum(one.slots for one in ready.task_managers()) == profile.slots or None
            except SluiceError:
                return None

        with ready:
            wait_for(registered, START_S, f"a Flink cluster of {len(profile.task_managers)} TaskManagers")


def _put_in_group(process: _Process, task_manager: TaskManager, prefix: str) -> None:
    process.cores = task_manager.cores
    if task_manager.cores is not None and (group := new_cpu_group(f"sluice-{prefix}-{task_manager.name}")) is not None:
        process.group = group
        group.add(process.popen.pid)


def _job_manager_flags(placement: Path) -> list[str]:
    return [
        *("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", f"-Xmx{JOB_MANAGER_MB / 2:.0f}m"),
        f"{PLACEMENT_FLAG}{placement}",
    ]
