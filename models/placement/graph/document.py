"""The file that `sluice place` and `sluice tune` read: a dataflow with its skew and slot sharing.

In the library both are separate arguments (modules `groups` and `slot_sharing`).
"""

from typing import Annotated

from pydantic import Field, model_validator

from models.dataflow import Dataflow, OperatorLoad
from models.placement.graph.groups import Shares
from models.placement.graph.union import Dataflows
from models.schema import Name, NonNegative


class GraphOperator(OperatorLoad):
    """An operator, the skew among its tasks, and its slot sharing group."""

    skew: tuple[NonNegative, ...] | None = Field(
        None,
        description="Load of each task by subtask index, relative to one another: [4, 1, 1, 1]; cpu, io and net are then "
        "the means over the tasks. All alike if absent.",
    )
    slot_sharing_group: Name | None = Field(
        None,
        description="Operators of one group put a task each into one slot. Where any operator names a group, those that "
        "name none are in the group 'default'; where none does, each task has a slot of its own.",
    )

    @model_validator(mode="after")
    def _check(self) -> "GraphOperator":
        if self.skew is not None:
            if len(self.skew) != self.parallelism:
                raise ValueError(
                    f"the skew of {self.name!r} needs a number for each of its {self.parallelism} tasks, but has "
                    f"{len(self.skew)}"
                )
            if not sum(self.skew) > 0:
                raise ValueError(f"the skew of {self.name!r} needs a task with load, but all its numbers are 0")
        return self


class Graph(Dataflow):
    """A physical dataflow with the loads of its tasks, their skew and their slots (`graph.json`)."""

    operators: tuple[GraphOperator, ...] = Field(min_length=1)

    @property
    def dataflow(self) -> Dataflow:
        """The operators with their mean loads."""
        kept = set(OperatorLoad.model_fields)
        operators = tuple(OperatorLoad(**o.model_dump(include=kept)) for o in self.operators)
        return Dataflow(name=self.name, operators=operators, edges=self.edges)

    @property
    def shares(self) -> Shares:
        """Operator -> load of each task, where a skew is given."""
        return {o.name: o.skew for o in self.operators if o.skew is not None}

    @property
    def slot_sharing_groups(self) -> dict[str, str]:
        """Operator -> group that it names."""
        return {o.name: o.slot_sharing_group for o in self.operators if o.slot_sharing_group is not None}


class Graphs(Dataflows):
    """Several jobs that share a cluster, each as in a `graph.json` of its own."""

    dataflows: Annotated[tuple[Graph, ...], Field(min_length=1, description="At least one; names are unique.")]
