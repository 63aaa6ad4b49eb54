"""The operators of a job's file in the vertices that run."""

from collections import Counter
from collections.abc import Sequence

from flink_client.jobs.operators import map_operators
from flink_client.jobs.running import sql_vertices
from flink_client.rest.client import FlinkRest
from models.capacity.observed.counters.counts import VertexCounts
from models.errors import InvalidInput
from models.job import Job


def operators_by_vertex(rest: FlinkRest, id_: str, job: Job, vertices: Sequence[VertexCounts]) -> dict[str, str]:
    """The operator that each vertex runs, by the vertex' id: by the names in the job's file, or by the dataflow of SQL.

    Raises:
        InvalidInput: an operator is in no vertex, or a vertex runs several of them, whose costs cannot be separated.
    """
    try:
        found = map_operators(job.order, vertices, job.flink_names)
    except InvalidInput:
        of_sql = None if job.flink_names else sql_vertices(rest, id_, job.order, job)
        if of_sql is None:
            raise
        found = of_sql
    shared = {id_ for id_, n in Counter(found.values()).items() if n > 1}
    if shared:
        chained = ", ".join(repr(name) for name, id_ in found.items() if id_ in shared)
        raise InvalidInput(
            f"Flink runs {chained} chained in one vertex, so that the cost of each is unknown; state them as one operator in "
            f"the file of {job.name!r} (`sluice observe --write-job` writes such a file)"
        )
    return {vertex: name for name, vertex in found.items()}
