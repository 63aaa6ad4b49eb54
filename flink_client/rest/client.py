"""A typed client of Flink's REST interface.

Paths and fields are those documented for Flink 1.20 and 2.3 (REST API).
"""

from collections.abc import Iterable
from urllib.parse import quote

from flink_client.rest.answers import TaskManagerStatus, numbers
from flink_client.rest.jars import JarApi
from flink_client.rest.jobs import JobApi
from flink_client.rest.snapshots import SnapshotApi
from flink_client.rest.transport import typed


class FlinkRest(JarApi, JobApi, SnapshotApi):
    """The REST interface of one cluster; close it, or use it as a context."""

    @typed
    def flink_version(self) -> str:
        return str(self._get("/config")["flink-version"])

    @typed
    def task_managers(self) -> tuple[TaskManagerStatus, ...]:
        """The registered TaskManagers."""
        return tuple(
            TaskManagerStatus(
                id=one["id"],
                slots=one["slotsNumber"],
                free_slots=one["freeSlots"],
                managed_memory_bytes=one["totalResource"]["managedMemory"] * 2**20,
            )
            for one in self._get("/taskmanagers")["taskmanagers"]
        )

    @typed
    def task_manager_metrics(self, task_manager: str, names: Iterable[str]) -> dict[str, float]:
        """Metrics of a TaskManager, such as `Status.JVM.CPU.Time` (ns); unknown ones are left out."""
        return numbers(self._get(f"/taskmanagers/{quote(task_manager)}/metrics", {"get": ",".join(names)}))
