"""Where the tasks of a rescale in place go: CAPS decides by what each vertex was seen to take, for a placement hook.

Flink starts all tasks of the job again anyway, so moves cost nothing more.
"""

import logging
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from pydantic import ValidationError

from flink_client.jobs.deployment import AvailableTaskManager
from flink_client.jobs.job_graph import PARTITIONINGS
from flink_client.rest.answers import VertexEdge, graph
from flink_client.rest.client import FlinkRest
from models.cluster import Cluster, Worker
from models.dataflow import Dataflow, Edge, OperatorLoad, Partitioning
from models.errors import SluiceError
from models.placement.shared.place import tune_shared
from models.placement.shared.sharing import SharedDataflow
from models.plan.slots import subtasks_in
from models.scaling.control.activity import JobActivity
from models.wording import natural_order
from pipelines.control.actions.intents import IntendedPlacement
from pipelines.control.sensing import Sight
from testbeds.flink.placement_hook import obstacle_to_writing, placement_file, placement_text, write_placement

SEARCH_S: Final = 1.0
"""Longest search; the best placement that was found until then is taken."""
_logger = logging.getLogger(__name__)


def intended_placement(
    rest: FlinkRest, sight: Sight, flink_job: str, wanted: Mapping[str, int]
) -> IntendedPlacement | None:
    """The placement of the wanted tasks; None if the cluster has no placement hook. Only GET requests.

    Args:
        wanted: tasks by vertex id.

    Raises:
        SluiceError: there is a hook, and the tasks cannot be placed; the message says why.
    """
    try:
        file = placement_file(rest)
    except SluiceError as error:  # who may not read the JobManager's options can hardly write its files
        _logger.debug("whether there is a placement hook was not read: %s", error)
        return None
    if file is None:
        return None
    if obstacle := obstacle_to_writing(rest, file, flink_job):
        raise SluiceError(obstacle)
    if sight.activity is None or sight.slowly is None:
        raise SluiceError("what the tasks take was not read since the job was started")
    edges = graph(rest.get(f"/jobs/{flink_job}/plan")["plan"])[1]
    shared = shared_dataflow(sight, sight.activity, wanted, edges)
    room = sight.slowly.room
    found = tune_shared(shared, _cluster(room), clock=time.monotonic, time_limit_s=SEARCH_S)
    ids = {name: id_ for id_, name in sight.names.items()}
    ordered = {worker: found.slots[worker] for worker in sorted(found.slots, key=natural_order)}
    tasks = [task._replace(vertex=ids[task.vertex]) for task in subtasks_in(ordered, shared.group_of)]
    return IntendedPlacement(
        file=str(file),
        lines=placement_text(sum(one.slots for one in room), tasks, fewer=True),
        before=file.read_text(encoding="utf-8"),
        tasks={worker: found.placement[worker] for worker in ordered},
    )


def put(placement: IntendedPlacement | None) -> None:
    """Give the placement to the hook; where its file cannot be written any more, what it holds stays in force."""
    if placement is not None:
        _write(placement.file, placement.lines)


def put_back(placement: IntendedPlacement | None) -> None:
    """Give the hook what it had before."""
    if placement is not None:
        _write(placement.file, placement.before)


def _write(file: str, lines: str) -> None:
    try:
        write_placement(Path(file), lines)
    except OSError as error:
        _logger.warning("the placement hook's file %s was not written: %s", file, error)


def shared_dataflow(
    sight: Sight, activity: JobActivity, wanted: Mapping[str, int], edges: Sequence[VertexEdge]
) -> SharedDataflow:
    """The running vertices with the load that each of the wanted tasks will have: an even share of what was seen."""
    running = {v.id: v for v in sight.vertices}
    operators = tuple(
        OperatorLoad(
            name=sight.names[id_],
            parallelism=wanted[id_],
            cpu=float(activity.vertices[id_].cpu_s.sum()) / activity.seconds / wanted[id_],
            io=activity.traffic[id_].state / wanted[id_],
            net=activity.traffic[id_].sent / wanted[id_],
        )
        for id_ in running
    )
    joined = {
        (e.upstream, e.downstream): PARTITIONINGS.get(e.ship_strategy, Partitioning.REBALANCE)
        for e in edges
        if e.upstream in running and e.downstream in running
    }
    # Each edge takes all records, and to each task behind one that broadcasts.
    copies = {(up, down): wanted[down] if how is Partitioning.BROADCAST else 1 for (up, down), how in joined.items()}
    in_all = Counter[str]()
    for (up, _), number in copies.items():
        in_all[up] += number
    links = tuple(
        Edge(
            upstream=sight.names[up],
            downstream=sight.names[down],
            partitioning=how,
            share=copies[up, down] / in_all[up],
        )
        for (up, down), how in joined.items()
    )
    return SharedDataflow(
        dataflow=Dataflow(operators=operators, edges=links),
        group_of={sight.names[id_]: v.slot_group for id_, v in running.items()},
        chains={sight.names[id_]: (sight.names[id_],) for id_ in running},
    )


def _cluster(room: Sequence[AvailableTaskManager]) -> Cluster:
    try:
        return Cluster(workers=tuple(Worker(name=one.task_manager, slots=one.slots) for one in room if one.slots))
    except ValidationError as error:
        raise SluiceError(
            f"a TaskManager's name cannot stand in a placement ({error.errors()[0]['msg']}); set taskmanager.resource-id"
        ) from error
