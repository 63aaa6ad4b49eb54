"""What changes from one version of a plan to another."""

from pydantic import Field

from models.schema import Format, Name, NonNegative, PositiveInt


class ParallelismChange(Format):
    """An operator that gets more or fewer tasks."""

    operator: Name = Field(description="Whose tasks.")
    before: int = Field(ge=0, description="0 where the operator is new.")
    after: int = Field(ge=0, description="0 where the operator is gone.")


class MemoryChange(Format):
    """An operator whose tasks get more or less managed memory."""

    operator: Name = Field(description="Whose memory.")
    before_mb: NonNegative = Field(description="Managed memory of one task before, MiB; 0 where the operator is new.")
    after_mb: NonNegative = Field(description="The same after, MiB; 0 where the operator is gone.")


class Difference(Format):
    """The difference between two plans: what changes, and how many tasks start or stop."""

    from_version: PositiveInt = Field(description="Version that the difference starts from.")
    parallelism: tuple[ParallelismChange, ...] = Field((), description="Operators whose number of tasks changes.")
    managed_memory: tuple[MemoryChange, ...] = Field((), description="Operators whose managed memory changes.")
    task_slots_before: int = Field(ge=0, description="`task_slots` of that version.")
    task_slots_after: int = Field(ge=0, description="`task_slots` of this version.")
    tasks_moved: int = Field(ge=0, description="Tasks that start on a worker that did not run them.")
    tasks_stopped: int = Field(ge=0, description="Tasks that end on a worker which ran them.")


class PlacementChange(Format):
    """Tasks of one operator on one worker before and after; the difference starts or stops there."""

    worker: Name
    operator: Name
    before: int = Field(ge=0)
    after: int = Field(ge=0)
