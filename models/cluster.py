"""Workers (Flink: TaskManagers) and their slots."""

from collections import Counter
from typing import Annotated, Any, ClassVar, Final, Literal

from pydantic import Field, model_validator

from models.resources.price import UsdPerHour
from models.schema import NAME, SCHEMA_VERSION, Format, Name, Positive, PositiveInt

MOST_WORKERS: Final = 100_000
MOST_SLOTS: Final = 1_000_000
MOST_CORES: Final = 1e6
MOST_MEMORY_MB: Final = 1e9
"""Of one worker, so that the sum over all of them is a number."""


class Worker(Format):
    """One TaskManager. A capacity that is absent is not a constraint."""

    name: Name = Field(description="Unique within the cluster.")
    slots: PositiveInt = Field(le=MOST_SLOTS, description="Tasks that run on it at the same time, at most.")
    cores: Positive | None = Field(None, le=MOST_CORES, description="CPU cores shared by the tasks on it.")
    memory_mb: Positive | None = Field(None, le=MOST_MEMORY_MB, description="Memory of the TaskManager, MiB.")
    io: Positive | None = Field(None, description="State access bandwidth, bytes/s.")
    net: Positive | None = Field(None, description="Outbound network bandwidth, bytes/s.")
    # Omitted if absent, so that digests of clusters without prices stay the same.
    price_per_hour: UsdPerHour | None = Field(
        None, exclude_if=lambda price: price is None, description="Price, USD per hour; unknown if absent."
    )


class WorkerKind(Worker):
    """A kind of worker that can be had."""

    name: Annotated[str, Field(pattern=NAME, max_length=100)] = Field(
        description="Unique within the offer; its workers are NAME-1, NAME-2, ..."
    )
    count: PositiveInt | None = Field(
        None, le=MOST_WORKERS, description="Most workers of it; as many as wanted if absent."
    )

    @property
    def most(self) -> int:
        """Most workers of this kind."""
        return self.count or MOST_WORKERS

    def workers(self, count: int) -> tuple[Worker, ...]:
        """So many workers of this kind."""
        shared = self.model_dump(exclude={"name", "count"})
        return tuple(Worker(name=f"{self.name}-{i + 1}", **shared) for i in range(count))


class Cluster(Format):
    """Where tasks run: `{"workers": [...]}`, or `{"count": 4, "slots": 4, ...}` for equal workers tm-1, tm-2, ..."""

    SHORTHAND: ClassVar = ("count", "slots", "cores", "memory_mb", "io", "net", "price_per_hour")
    """Fields that may replace `workers`."""

    schema_version: Literal[1] = Field(SCHEMA_VERSION, description="Version of this format.")
    name: Name = Field("cluster", description="In the catalogue also the name of the file, without its ending.")
    description: str = Field("", description="What it is, and where its figures come from.")
    workers: Annotated[tuple[Worker, ...], Field(min_length=1, description="At least one.")]

    @model_validator(mode="before")
    @classmethod
    def _expand_equal_workers(cls, data: Any) -> Any:
        if isinstance(data, dict) and "kinds" in data:
            raise ValueError(
                "worker kinds are offered to a plan, which picks one; here the workers must be given: 'workers', or "
                "'count' with 'slots'"
            )
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


class WorkerOffer(Format):
    """Kinds of workers to plan with: `{"kinds": [...]}` in place of a cluster's workers. A plan picks the cheapest."""

    schema_version: Literal[1] = Field(SCHEMA_VERSION, description="Version of this format.")
    name: Name = Field("cluster", description="In the catalogue also the name of the file, without its ending.")
    description: str = Field("", description="What it is, and where its figures come from.")
    kinds: Annotated[tuple[WorkerKind, ...], Field(min_length=1)] = Field(
        description="At least one; where there are several, each with a price."
    )

    @model_validator(mode="after")
    def _check(self) -> "WorkerOffer":
        for name, count in Counter(k.name for k in self.kinds).items():
            if count > 1:
                raise ValueError(f"names of worker kinds must be unique, but {name!r} appears {count} times")
        unknown = [kind.name for kind in self.kinds if kind.price_per_hour is None]
        if unknown and len(self.kinds) > 1:
            raise ValueError(
                f"several worker kinds are compared by price, but {unknown[0]!r} has none; state its price_per_hour, or "
                "leave the kind out"
            )
        return self
