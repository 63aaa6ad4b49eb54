"""Reading GRAPH files: one dataflow, or several jobs that are placed together; with skew and slot sharing."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from models.cluster import Cluster
from models.dataflow import Dataflow
from models.errors import InvalidInput, SluiceError
from models.placement import PlacementResult, Tuning
from models.placement.front import Front
from models.placement.graph.document import Graph, Graphs
from models.placement.graph.groups import GroupedDataflow, split_skewed
from models.placement.graph.slot_sharing import slots_taken, with_shared_slots
from models.placement.graph.union import by_job, joined_name, union
from models.plan.parts import Placement
from models.vertices import DEFAULT_GROUP
from pipelines.inputs.parsing.files import read_as_one_of


@dataclass(frozen=True)
class PlacementProblem:
    """The input of one placement problem."""

    whole: Dataflow
    """The only job, or the union of all."""
    grouped: GroupedDataflow
    """The same with placement groups in place of skewed operators, as the search sees it."""
    slot_sharing_groups: Mapping[str, str] = field(default_factory=dict)
    """Operator -> its slot sharing group; slots are shared if any operator names one."""
    jobs: tuple[Dataflow, ...] = ()
    """The jobs of a file with several."""

    @property
    def dataflow(self) -> Dataflow:
        """The dataflow of the search, in which placement groups are operators."""
        return self.grouped.dataflow

    def seen_by_search(self, cluster: Cluster) -> Cluster:
        """The cluster with as many slots as tasks fit on a worker."""
        if not self.slot_sharing_groups:
            return cluster
        return with_shared_slots(cluster, self.whole, self.slot_sharing_groups)

    def refuse_shared_slots(self, what: str) -> None:
        """Raises InvalidInput if slots are shared, since Flink cannot realise every placement that the search considers."""
        if self.slot_sharing_groups:
            raise InvalidInput(f"{what} only if no operator names a slot_sharing_group; leave the groups out")

    def check_slots(self, placement: Placement, cluster: Cluster) -> None:
        """Check the slots: the search ignores that Flink puts at most one task of an operator into a slot.

        Raises:
            SluiceError: a worker would need more slots than it has.
        """
        if not self.slot_sharing_groups:
            return
        taken = slots_taken(self.grouped.merge(placement), self.whole, self.slot_sharing_groups)
        for worker in cluster.workers:
            if taken.get(worker.name, 0) > worker.slots:
                raise SluiceError(
                    f"the placement found needs {taken[worker.name]} slots of worker {worker.name!r}, which has "
                    f"{worker.slots}, since a slot holds at most one task of an operator; choose "
                    "other thresholds or another policy, other slot sharing groups, or more slots"
                )

    def document(self, answer: PlacementResult | Tuning) -> dict[str, Any]:
        """The answer as JSON, by the operators of the file; for several jobs also with `jobs`: the placement of each, in its
        own names."""
        merged = self._merged(answer)
        document: dict[str, Any] = merged.model_dump(mode="json", by_alias=True)
        return {**document, "jobs": by_job(merged.placement, self.jobs)} if self.jobs else document

    def front_document(self, front: Front) -> dict[str, Any]:
        """The front as JSON, by the operators of the file."""
        document: dict[str, Any] = front.model_dump(mode="json", by_alias=True)
        for point in document["points"]:
            point["placement"] = self.grouped.merge(point["placement"])
        return document

    def _merged(self, answer: PlacementResult | Tuning) -> PlacementResult | Tuning:
        if len(self.dataflow.operators) == len(self.whole.operators):
            return answer
        placement = self.grouped.merge(answer.placement)
        subtasks = self.grouped.merge_subtasks(answer.placement, answer.subtasks)
        return answer.model_copy(update={"placement": placement, "subtasks": subtasks})


def read_graph(path: Path) -> PlacementProblem:
    """Read `{"operators": [...], "edges": [...]}`, or `{"dataflows": [...]}` with several of these, each with a name.

    Raises:
        InvalidInput: naming file, line, field, value and rule.
    """
    read = read_as_one_of(path, _format_of)
    try:
        if isinstance(read, Graph):
            whole = read.dataflow
            return PlacementProblem(whole, split_skewed(whole, read.shares), read.slot_sharing_groups)
        assert isinstance(read, Graphs)
        jobs = tuple(graph.dataflow for graph in read.dataflows)
        whole = union(jobs)
        shares = {joined_name(g.name, name): own for g in read.dataflows for name, own in g.shares.items()}
        return PlacementProblem(whole, split_skewed(whole, shares), _slot_sharing_groups(read), jobs)
    except InvalidInput as error:
        raise InvalidInput(f"{path}: {error}") from None


def _slot_sharing_groups(graphs: Graphs) -> dict[str, str]:
    """Operator of the union -> group, if a job has any: jobs do not share slots with each other, and in a job without
    groups each operator has its own."""
    if not any(graph.slot_sharing_groups for graph in graphs.dataflows):
        return {}
    groups = {}
    for graph in graphs.dataflows:
        named = graph.slot_sharing_groups
        for o in graph.operators:
            group = named.get(o.name, DEFAULT_GROUP) if named else f"{o.name} alone"
            groups[joined_name(graph.name, o.name)] = joined_name(graph.name, group)
    return groups


def _format_of(data: Any) -> type[BaseModel]:
    return Graphs if isinstance(data, dict) and "dataflows" in data else Graph
