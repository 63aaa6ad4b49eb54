"""The interface of a Flink cluster that the testbed needs, local or named by the user."""

from collections.abc import Collection
from pathlib import Path
from typing import Protocol

from flink_client.metrics.readings import Readings
from flink_client.rest.client import FlinkRest
from models.plan.slots import PlacedTask


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

    def new_job_id(self) -> str:
        """An id for the next job, 32 hexadecimal digits, from which on the cluster takes care that it ends."""
        ...

    def data_path(self, file: Path) -> str:
        """Where source tasks read a recorded file: a path, or an http address."""
        ...

    def place(self, tasks: Collection[PlacedTask]) -> None:
        """From now on place tasks, of vertices by id, like this; empty: Flink decides."""
        ...

    def readings(self, job: str) -> Readings:
        """A reader of the counters of a job's tasks."""
        ...

    @property
    def takes_savepoints(self) -> bool:
        """Whether the cluster has a folder for savepoints."""
        ...

    def check(self) -> None:
        """Raise SluiceError if it cannot be measured on any more."""
        ...
