"""The dataflow that Flink plans for a SQL script, and the vertex of each operator of a job."""

import re
from collections import Counter
from collections.abc import Sequence
from typing import Any, Final

from flink_client.answers import Vertex, VertexEdge
from models.dataflow import Partitioning
from models.errors import InvalidInput
from models.job import Job, Kind

PARTITIONINGS: Final = {"HASH": Partitioning.HASH, "BROADCAST": Partitioning.BROADCAST}
"""By Flink's ship strategy. All others are REBALANCE: an edge that a plan of single tasks calls FORWARD has no
partitioning of its own, and Flink deals its records out evenly once its ends differ in tasks."""
_NUMBER: Final = re.compile(r"\[(\d+)\]:")
TABLE: Final = re.compile(r"TableSourceScan\(table=\[\[[^,\]]+, [^,\]]+, ([^,\]]+)")
_SINK: Final = re.compile(r"^([^\[:]+)\[\d+\]: Writer")
_ACTION: Final = re.compile(r"(?:\[\d+\]:)?\s*([A-Za-z][^(\[:]*)")
"""What a vertex does, before its arguments; or the name that a jar's program gave it."""
LONGEST_NAME: Final = 60
_UNMEASURED: Final = "read from Flink's plan; what a record costs is not known before it is measured"


def vertices_of(job: Job, vertices: Sequence[Vertex], edges: Sequence[VertexEdge]) -> dict[str, Vertex]:
    """The vertex of each operator of a job, for a plan without chaining.

    Flink numbers what it plans from the sources on; a job's file lists its operators in the same order. Edges and
    partitionings must agree.

    Raises:
        InvalidInput: they do not; the message shows Flink's dataflow.
    """
    planned = _in_plan_order(vertices)
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

    Sources are called as their table, sinks as the table they write, others by what they do (`calc`,
    `group-window-aggregate`) or as a jar's program names them, numbered in the order of the plan where that occurs more than
    once. Costs are not known: those in the job are placeholders, and its `figures_from` say so.

    Args:
        called: find what sources are called that read no table, as their first group.

    Raises:
        InvalidInput: no vertex is a source or no vertex is a sink.
    """
    planned = _in_plan_order(vertices)
    names = dict(zip((v.id for v in planned), _names([_stem(v.name, called) for v in planned]), strict=True))
    has_input, has_output = {e.downstream for e in edges}, {e.upstream for e in edges}
    keyed = {e.downstream for e in edges if e.ship_strategy == "HASH"}
    sources = sum(v.id not in has_input for v in planned)
    operators: list[dict[str, Any]] = []
    for vertex in planned:
        kind = (
            Kind.SOURCE if vertex.id not in has_input else Kind.SINK if vertex.id not in has_output else Kind.OPERATOR
        )
        operator: dict[str, Any] = {"name": names[vertex.id], "kind": kind, "description": vertex.name}
        operator["figures_from"] = _UNMEASURED
        operator["cost"] = {"cpu_s": 1e-6, "bytes_out": 0.0 if kind is Kind.SINK else 100.0}
        if kind is Kind.SOURCE:
            operator["rate_share"] = 1 / sources
        if vertex.id in keyed:
            operator |= {"keys": {"distinct": 1}, "state": {}}
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


def _in_plan_order(vertices: Sequence[Vertex]) -> list[Vertex]:
    """By Flink's number where each has one, else in topological order."""
    numbers = [_NUMBER.search(v.name) for v in vertices]
    if not all(numbers):
        return list(vertices)
    return [v for _, v in sorted(((int(n[1]), v) for n, v in zip(numbers, vertices, strict=True) if n), key=_first)]


def _first(pair: tuple[int, Vertex]) -> int:
    return pair[0]


def _stem(description: str, called: Sequence[re.Pattern[str]]) -> str:
    """What a vertex is called, from its description in the plan."""
    for pattern in (TABLE, *called, _SINK):
        if found := pattern.search(description):
            return _safe(found[1])
    found = _ACTION.search(description)
    words = re.sub(r"(?<=[a-z])(?=[A-Z])", "-", found[1] if found else "operator")
    return _safe(words.lower()[:LONGEST_NAME])


def _safe(text: str) -> str:
    return re.sub(r"[^A-Za-z0-9._-]+", "-", text).strip("-._") or "operator"


def _names(stems: Sequence[str]) -> list[str]:
    """Each stem, with its place among its likes where there are several."""
    total, seen, names = Counter(stems), Counter[str](), []
    for stem in stems:
        seen[stem] += 1
        names.append(stem if total[stem] == 1 else f"{stem}-{seen[stem]}")
    return names


def _partitioning(edge: VertexEdge) -> Partitioning:
    return PARTITIONINGS.get(edge.ship_strategy, Partitioning.REBALANCE)


def _is_keyed(partitioning: Partitioning) -> Partitioning:
    """Forward and rebalance are one, see PARTITIONINGS."""
    return Partitioning.REBALANCE if partitioning is Partitioning.FORWARD else partitioning
