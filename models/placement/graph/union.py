"""Several jobs on one cluster as one placement problem (CAPSys section 6.2.2).

The union of dataflows G_1, ..., G_J has the operators and the edges of all of them and no edge between two, so that a
load counts on its worker whichever job it comes from: L_min, L_max and C are those of all tasks together. An operator
`window` of the job `q5` is called `q5.window` in the union.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Annotated, Final, Literal, TypeVar

from pydantic import Field, model_validator

from models.dataflow import Dataflow
from models.errors import InvalidInput
from models.schema import SCHEMA_VERSION, Format

LONGEST_NAME: Final = 120
"""Most characters of a name, joined names included."""
Value = TypeVar("Value")


class Dataflows(Format):
    """Several jobs that share a cluster: `{"dataflows": [...]}`, each as in a `graph.json` of its own."""

    schema_version: Literal[1] = SCHEMA_VERSION
    dataflows: Annotated[tuple[Dataflow, ...], Field(min_length=1, description="At least one; names are unique.")]

    @model_validator(mode="after")
    def _check(self) -> "Dataflows":
        for name, count in Counter(d.name for d in self.dataflows).items():
            if count > 1:
                raise ValueError(
                    f"dataflow names must be unique, but {name!r} occurs {count} times; give each job its own name"
                )
        return self


def union(dataflows: Sequence[Dataflow]) -> Dataflow:
    """All jobs as one dataflow; one after the other, each in its own order.

    Raises:
        InvalidInput: there is none, two have the same name, or two operators get the same name or one too long.
    """
    if not dataflows:
        raise InvalidInput("a union needs at least one dataflow, but got none")
    names = [joined_name(d.name, o.name) for d in dataflows for o in d.operators]
    for unique in ([d.name for d in dataflows], names):
        name, count = Counter(unique).most_common(1)[0]
        if count > 1:
            raise InvalidInput(
                f"names must be unique in a union of jobs, but {name!r} occurs {count} times; rename one"
            )
    longest = max(names, key=len)
    if len(longest) > LONGEST_NAME:
        raise InvalidInput(
            f"a job's name and an operator's may have {LONGEST_NAME} characters together, but {longest!r} has "
            f"{len(longest)}; shorten one"
        )
    return Dataflow(
        name="union",
        operators=tuple(
            o.model_copy(update={"name": joined_name(d.name, o.name)}) for d in dataflows for o in d.operators
        ),
        edges=tuple(
            e.model_copy(
                update={"upstream": joined_name(d.name, e.upstream), "downstream": joined_name(d.name, e.downstream)}
            )
            for d in dataflows
            for e in d.edges
        ),
    )


def by_job(
    placed: Mapping[str, Mapping[str, Value]], dataflows: Sequence[Dataflow]
) -> dict[str, dict[str, dict[str, Value]]]:
    """A placement of the union split by job, with the job's own names: job -> worker -> operator -> value.

    Args:
        placed: worker -> operator of the union -> number of tasks, or indices of subtasks.
    """
    return {
        d.name: {
            worker: own
            for worker, tasks in placed.items()
            if (own := {o.name: tasks[name] for o in d.operators if (name := joined_name(d.name, o.name)) in tasks})
        }
        for d in dataflows
    }


def joined_name(job: str, operator: str) -> str:
    """Name of a job's operator in the union."""
    return f"{job}.{operator}"
