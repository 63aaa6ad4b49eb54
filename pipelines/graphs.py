"""Reading GRAPH files: one dataflow, or several jobs that are placed together."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from models.dataflow import Dataflow
from models.errors import InvalidInput
from models.placement import PlacementResult, Tuning
from models.placement.union import Dataflows, by_job, union
from pipelines.files import read_as_one_of


@dataclass(frozen=True)
class Graph:
    """What is to be placed as one problem."""

    dataflow: Dataflow
    """The only job, or the union of all."""
    jobs: tuple[Dataflow, ...] = ()
    """The jobs of a file with several."""

    def with_jobs(self, answer: PlacementResult | Tuning) -> dict[str, Any]:
        """The answer as JSON; that of several jobs also has the placement of each, in its own names, as `jobs`."""
        document: dict[str, Any] = answer.model_dump(mode="json", by_alias=True)
        return {**document, "jobs": by_job(answer.placement, self.jobs)} if self.jobs else document


def read_graph(path: Path) -> Graph:
    """Read `{"operators": [...], "edges": [...]}`, or `{"dataflows": [...]}` with several of these, each with a name.

    Raises:
        InvalidInput: naming file, line, field, value and rule.
    """
    read = read_as_one_of(path, _format_of)
    if isinstance(read, Dataflow):
        return Graph(read)
    assert isinstance(read, Dataflows)
    try:
        return Graph(union(read.dataflows), read.dataflows)
    except InvalidInput as error:
        raise InvalidInput(f"{path}: {error}") from None


def _format_of(data: Any) -> type[BaseModel]:
    return Dataflows if isinstance(data, dict) and "dataflows" in data else Dataflow
