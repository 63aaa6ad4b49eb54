"""The dataflow that Flink plans for a SQL script, and the vertex of each operator of a job."""

import re
from collections import Counter
from collections.abc import Sequence
from typing import Any, Final

from flink_client.jobs.operators import chained_operators
from flink_client.rest.answers import Vertex, VertexEdge
from models.dataflow import Partitioning
from models.errors import InvalidInput
from models.job import Job, Kind

PARTITIONINGS: Final = {"HASH": Partitioning.HASH, "BROADCAST": Partitioning.BROADCAST}
"""By Flink's ship strategy. All others are REBALANCE: an edge that is FORWARD in a plan of single tasks has no
partitioning of its own, and Flink distributes its records evenly once the parallelisms differ."""
_NUMBER: Final = re.compile(r"\[(\d+)\]:")
TABLE: Final = re.compile(r"TableSourceScan\(table=\[\[[^,\]]+, [^,\]]+, ([^,\]]+)")
KAFKA_TABLE: Final = re.compile(r"^Source: KafkaSource-[^.]+\.[^.]+\.(\S+)")
"""A table that Flink's Kafka connector reads, which names the source itself."""
_SINK: Final = re.compile(r"^([^\[:]+)\[\d+\]: Writer")
_SOURCE: Final = re.compile(r"^Source: ([^\[(:]+)")
_ACTION: Final = re.compile(r"(?:\[\d+\]:)?\s*([A-Za-z][^(\[:]*)")
"""The operation of a vertex, before its arguments; or the name that a jar's program gave it."""
LONGEST_NAME: Final = 60
_UNMEASURED: Final = "read from Flink's plan; costs are unknown before they are measured"


def vertices_of(job: Job, vertices: Sequence[Vertex], edges: Sequence[VertexEdge]) -> dict[str, Vertex]:
    """The vertex of each operator of a job, for a plan without chaining.

    Flink numbers the operators of a plan from the sources on; a job's file lists them in the same order. Edges and
    partitionings must agree.

    Raises:
        InvalidInput: they do not agree; the message shows Flink's dataflow.
    """
    planned = _in_plan_order(vertices, edges)
    found = dict(zip((o.name for o in job.operators), planned, strict=False))
    read = read_job(job.name, vertices, edges)
    names = {o.name: v.name for o, v in zip(job.operators, read.operators, strict=False)}
    declared = {(names.get(e.upstream), names.get(e.downstream), _is_keyed(e.partitioning)) for e in job.edges}
    if len(job.operators) != len(planned) or declared != {
        (e.upstream, e.downstream, _is_keyed(e.partitioning)) for e in read.edges
    }:
        shown = ", ".join(f"{e.upstream} -> {e.downstream} ({e.partitioning.value})" for e in read.edges)
        raise InvalidInput(
            f"the operators of job {job.name!r} must be those that Flink makes of its SQL, listed in the order of Flink's "
            f"plan, but Flink has: {shown}; change the job's file, or plan the SQL file itself"
        )
    return found


def read_job(
    name: str, vertices: Sequence[Vertex], edges: Sequence[VertexEdge], called: Sequence[re.Pattern[str]] = ()
) -> Job:
    """The logical dataflow of a plan without chaining, as a job.

    Sources and sinks have the names of their tables, others that of their operation (`calc`, `group-window-aggregate`) or
    the one in the jar's program, numbered in the order of the plan if it occurs more than once. Costs are unknown: those in
    the job are placeholders, and its `figures_from` say so.

    Args:
        called: patterns whose first group is the name of a source that reads no table.

    Raises:
        InvalidInput: no vertex is a source or no vertex is a sink.
    """
    planned = _in_plan_order(vertices, edges)
    names = dict(zip((v.id for v in planned), _names([_stem(v.name, called) for v in planned]), strict=True))
    has_input, has_output = {e.downstream for e in edges}, {e.upstream for e in edges}
    keyed = {e.downstream for e in edges if e.ship_strategy == "HASH"}
    single = {e.downstream for e in edges if e.ship_strategy == "GLOBAL"}
    sources = sum(v.id not in has_input for v in planned)
    operators: list[dict[str, Any]] = []
    for vertex in planned:
        kind = (
            Kind.SOURCE if vertex.id not in has_input else Kind.SINK if vertex.id not in has_output else Kind.OPERATOR
        )
        operator: dict[str, Any] = {"name": names[vertex.id], "kind": kind, "description": vertex.name}
        operator["figures_from"] = _UNMEASURED
        if names[vertex.id] not in chained_operators(vertex.name) and not _is_made_up(vertex.name, called):
            operator["flink_name"] = vertex.name
        operator["cost"] = {"cpu_s": 1e-6, "bytes_out": 0.0 if kind is Kind.SINK else 100.0}
        if kind is Kind.SOURCE:
            operator["rate_share"] = 1 / sources
        if vertex.id in keyed:
            operator |= {"keys": {"distinct": 1}, "state": {}}
        if vertex.id in single:
            operator["max_parallelism"] = 1  # all records go to its first task, as those of an aggregate without a key
        operators.append(operator)
    place = {v.id: i for i, v in enumerate(planned)}
    ordered = sorted(edges, key=lambda e: (place[e.upstream], place[e.downstream]))
    joined = {(names[e.upstream], names[e.downstream]): _partitioning(e) for e in ordered}
    return Job.model_validate(
        {
            "name": name,
            "description": f"The SQL script {name}, as Flink plans it.",
            "figures_from": _UNMEASURED,
            "operators": operators,
            "edges": [{"from": up, "to": down, "partitioning": how} for (up, down), how in joined.items()],
        }
    )


def _in_plan_order(vertices: Sequence[Vertex], edges: Sequence[VertexEdge]) -> list[Vertex]:
    """By Flink's number where each has one, else in topological order.

    Sources have none on Flink 2.3: such a one comes just before the first that reads from it.
    """
    numbers = {v.id: float(found[1]) for v in vertices if (found := _NUMBER.search(v.name))}
    sources = {v.id for v in vertices} - {e.downstream for e in edges}
    for source in sources - numbers.keys():
        readers = [numbers[e.downstream] for e in edges if e.upstream == source and e.downstream in numbers]
        if readers:
            numbers[source] = min(readers) - 0.5
    if any(v.id not in numbers for v in vertices):
        return list(vertices)
    return [v for _, v in sorted(((numbers[v.id], v) for v in vertices), key=_first)]


def _first(pair: tuple[float, Vertex]) -> float:
    return pair[0]


def _is_made_up(description: str, called: Sequence[re.Pattern[str]]) -> bool:
    """Whether the running job has other names: SQL describes its vertices, and a rated source replaces the user's."""
    return any(pattern.search(description) for pattern in (_NUMBER, *called))


def _stem(description: str, called: Sequence[re.Pattern[str]]) -> str:
    """The name of a vertex, from its description in the plan."""
    for pattern in (TABLE, KAFKA_TABLE, *called, _SINK, _SOURCE):
        if found := pattern.search(description):
            return _safe(found[1])
    found = _ACTION.search(description)
    words = re.sub(r"(?<=[a-z])(?=[A-Z])", "-", found[1] if found else "operator")
    return _safe(words.lower()[:LONGEST_NAME])


def _safe(text: str) -> str:
    return re.sub(r"[^A-Za-z0-9._-]+", "-", text).strip("-._") or "operator"


def _names(stems: Sequence[str]) -> list[str]:
    """Each stem, numbered if it occurs more than once."""
    total, seen, names = Counter(stems), Counter[str](), []
    for stem in stems:
        seen[stem] += 1
        names.append(stem if total[stem] == 1 else f"{stem}-{seen[stem]}")
    return names


def _partitioning(edge: VertexEdge) -> Partitioning:
    return PARTITIONINGS.get(edge.ship_strategy, Partitioning.REBALANCE)


def _is_keyed(partitioning: Partitioning) -> Partitioning:
    """Forward and rebalance count as the same, see PARTITIONINGS."""
    return Partitioning.REBALANCE if partitioning is Partitioning.FORWARD else partitioning
