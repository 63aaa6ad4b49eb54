"""CPU quotas of processes by control groups (version 1 or 2), if this process may write them."""

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

_PERIOD_US: Final = 100_000
"""The period of Kubernetes. The kernel grants a quota in slices of 5 ms per processor, whose unused rest is lost: little
for a quota of 15 ms in 100 ms, but much for one of 3 ms in 20 ms."""
_FIRST, _LIKE_OTHERS = {1: 262_144, 2: 10_000}, {1: 1024, 2: 100}
"""By version: the greatest weight of a group, and that of other work."""
_MOUNTS: Final = Path("/proc/self/mounts")
_OWN_GROUPS: Final = Path("/proc/self/cgroup")


@dataclass(frozen=True)
class CpuGroup:
    """A control group for one process, whose threads can be exempted one by one."""

    folder: Path
    version: int

    @property
    def held(self) -> Path:
        """The group with the quota. In version 2 it is a child: all threads of a process stay below one group."""
        return self.folder / "held" if self.version == 2 else self.folder

    def make(self) -> None:
        self.folder.mkdir()
        if self.version == 2:
            self.held.mkdir()
            (self.held / "cgroup.type").write_text("threaded")

    def add(self, pid: int) -> None:
        """Limit a process with all its threads."""
        for folder in dict.fromkeys([self.folder, self.held]):
            (folder / "cgroup.procs").write_text(str(pid))

    def let_out(self, thread: int) -> None:
        """Exempt one thread, and those that it starts, from the quota; a thread that has ended is ignored."""
        threads = self.folder / "cgroup.threads" if self.version == 2 else self.folder.parent / "tasks"
        with suppress(ProcessLookupError):
            threads.write_text(str(thread))

    def limit(self, cores: float | None) -> None:
        """Let the group use `cores` of CPU time per second; None: no limit.

        Quota that it could not use in one period, since no processor was free, carries over to the next. It goes before other
        work of the machine, which would otherwise keep it from its quota.
        """
        weight = (_LIKE_OTHERS if cores is None else _FIRST)[self.version]
        quota = None if cores is None else max(1000, round(cores * _PERIOD_US))
        if self.version == 2:
            (self.folder / "cgroup.subtree_control").write_text("+cpu")
            self._save_up("cpu.max.burst", 0)
            (self.held / "cpu.max").write_text(f"{'max' if quota is None else quota} {_PERIOD_US}")
            (self.folder / "cpu.weight").write_text(str(weight))
            self._save_up("cpu.max.burst", quota or 0)
        else:
            self._save_up("cpu.cfs_burst_us", 0)
            (self.held / "cpu.cfs_period_us").write_text(str(_PERIOD_US))
            (self.held / "cpu.cfs_quota_us").write_text(str(-1 if quota is None else quota))
            (self.held / "cpu.shares").write_text(str(weight))
            self._save_up("cpu.cfs_burst_us", quota or 0)

    def _save_up(self, file: str, most_us: int) -> None:
        if (self.held / file).exists():  # since Linux 5.14
            (self.held / file).write_text(str(most_us))

    def remove(self) -> None:
        """Remove the group, if it still exists; its processes must have ended."""
        for folder in dict.fromkeys([self.held, self.folder]):
            if folder.exists():
                folder.rmdir()


def new_cpu_group(name: str) -> CpuGroup | None:
    """A group below that of this process; None if it cannot be written."""
    for parent, version in _parents():
        group = CpuGroup(parent / name, version)
        try:
            group.make()
            group.limit(None)
            return group
        except OSError:
            group.remove()
    return None


def cpu_groups(prefix: str) -> Iterator[CpuGroup]:
    """Groups with this prefix, to remove those left by a killed process."""
    for parent, version in _parents():
        yield from (CpuGroup(path, version) for path in parent.glob(f"{prefix}*") if path.is_dir())


def threads_named(pid: int, *beginnings: str) -> list[int]:
    """Threads of a process with this name prefix; empty if it has ended."""
    found = []
    for thread in Path(f"/proc/{pid}/task").glob("*"):
        with suppress(OSError):
            if (thread / "comm").read_text(encoding="utf-8").startswith(beginnings):
                found.append(int(thread.name))
    return found


def _parents() -> Iterator[tuple[Path, int]]:
    own = {controllers: path for _, controllers, path in map(_split_group, _lines(_OWN_GROUPS))}
    for line in _lines(_MOUNTS):
        _, mount, kind, options, *_ = line.split()
        if kind == "cgroup" and "cpu" in options.split(","):
            ours = next((path for controllers, path in own.items() if "cpu" in controllers.split(",")), "/")
            yield Path(mount) / ours.lstrip("/"), 1
        elif kind == "cgroup2":
            yield Path(mount) / own.get("", "/").lstrip("/"), 2


def _split_group(line: str) -> tuple[str, str, str]:
    number, controllers, path = line.split(":", 2)
    return number, controllers, path


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text(encoding="utf-8").splitlines()
    except OSError:
        return []
