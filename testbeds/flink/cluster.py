"""The interface of a Flink cluster that the testbed needs, local or named by the user."""

from collections.abc import Mapping
from pathlib import Path
from typing import Protocol

from flink_client.metrics.readings import Readings
from flink_client.rest import FlinkRest


class FlinkCluster(Protocol):
    """A cluster that jobs are submitted to."""

    @property
    def rest(self) -> FlinkRest: ...

    @property
    def kit(self) -> Path:
        """The jar of the Java kit."""
        ...

    def uploaded(self, jar: Path) -> str:
        """Id of a jar on the cluster, uploaded at first use."""
        ...

    def data_path(self, file: Path) -> str:
        """What the tasks of sources are to read a recorded file from: a path, or an http address."""
        ...

    def place(self, workers: Mapping[tuple[str, int], str]) -> None:
        """From now on schedule tasks so: TaskManager by vertex id and number of the task; none: as Flink likes."""
        ...

    def readings(self, job: str) -> Readings:
        """Where the counters of a job's tasks are read."""
        ...

    @property
    def takes_savepoints(self) -> bool:
        """Whether it says where savepoints go."""
        ...

    def check(self) -> None:
        """Raise SluiceError if it cannot be measured on any more."""
        ...
