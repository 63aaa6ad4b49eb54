"""Workers (Flink: TaskManagers) and their slots."""

from collections import Counter
from typing import Annotated, Any, ClassVar, Final, Literal

from pydantic import Field, model_validator

from models.schema import SCHEMA_VERSION, Format, Name, Positive, PositiveInt

MOST_WORKERS: Final = 100_000


class Worker(Format):
    """One TaskManager. A capacity that is absent is not a constraint."""

    name: Name = Field(description="Unique within the cluster.")
    slots: PositiveInt = Field(description="Tasks that run on it at the same time, at most.")
    cores: Positive | None = Field(None, description="CPU cores shared by the tasks on it.")
    memory_mb: Positive | None = Field(None, description="Memory of the TaskManager, MiB.")
    io: Positive | None = Field(None, description="State access bandwidth, bytes/s.")
    net: Positive | None = Field(None, description="Outbound network bandwidth, bytes/s.")


class Cluster(Format):
    """Where tasks run: `{"workers": [...]}`, or `{"count": 4, "slots": 4, ...}` for equal workers tm-1, tm-2, ..."""

    SHORTHAND: ClassVar = ("count", "slots", "cores", "memory_mb", "io", "net")
    """Fields that may replace `workers`."""

    schema_version: Literal[1] = Field(SCHEMA_VERSION, description="Version of this format.")
    name: Name = Field("cluster", description="In the catalogue also the name of the file, without its ending.")
    description: str = Field("", description="What it is, and where its figures come from.")
    workers: Annotated[tuple[Worker, ...], Field(min_length=1, description="At least one.")]

    @model_validator(mode="before")
    @classmethod
    def _expand_equal_workers(cls, data: Any) -> Any:
        if not isinstance(data, dict) or not any(key in data for key in cls.SHORTHAND):
            return data
        if "workers" in data:
            raise ValueError("give either 'workers' or 'count' with 'slots', not both")
        if "count" not in data:
            raise ValueError(
                "'slots' and capacities beside 'workers' need 'count', the number of equal workers; add it"
            )
        shared = {key: data[key] for key in cls.SHORTHAND if key in data and key != "count"}
        rest = {key: value for key, value in data.items() if key not in cls.SHORTHAND}
        count = data["count"]
        if not isinstance(count, int) or isinstance(count, bool) or not 1 <= count <= MOST_WORKERS:
            raise ValueError(f"'count' must be a whole number from 1 to {MOST_WORKERS}, but got {count!r}")
        return {**rest, "workers": [{"name": f"tm-{i + 1}", **shared} for i in range(count)]}

    @model_validator(mode="after")
    def _check(self) -> "Cluster":
        for name, count in Counter(w.name for w in self.workers).items():
            if count > 1:
                raise ValueError(f"worker names must be unique, but {name!r} appears {count} times")
        return self

    @property
    def slots(self) -> int:
        """Task slots of all workers."""
        return sum(w.slots for w in self.workers)
