"""The file of a job that was observed: its vertices, edges and figures, as Flink runs it."""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Final

from flink_client.jobs.operators import NamedVertex
from models.capacity.observed.record import ObservedJob, ObservedVertex
from models.capacity.observed.surroundings import VertexLink
from models.dataflow import Partitioning
from models.errors import InvalidInput
from models.job import Job, Kind

LONGEST: Final = 60
_LEAST_CPU_S: Final = 1e-9
_UNSAFE: Final = re.compile(r"[^A-Za-z0-9._-]+")


def safe_name(text: str) -> str:
    """A name for files and URLs, of Flink's."""
    return _UNSAFE.sub("-", text)[:LONGEST].strip("-._") or "job"


def operator_names(vertices: Sequence[NamedVertex]) -> dict[str, str]:
    """Name of each vertex as an operator of a job, by id: its chain, numbered if it occurs more than once."""
    stems = {v.id: safe_name("-".join(v.operators)) for v in vertices}
    total, seen = Counter(stems.values()), Counter[str]()
    names = {}
    for id_, stem in stems.items():
        seen[stem] += 1
        names[id_] = stem if total[stem] == 1 else f"{stem}-{seen[stem]}"
    return names


def job_of(observed: ObservedJob, edges: Sequence[VertexLink], cpu_s: Mapping[str, float | None]) -> Job:
    """The job, with a vertex as an operator. Finished vertices are left out: they need no slots any more.

    Args:
        edges: between its vertices.
        cpu_s: CPU seconds per record into each vertex, by id; None where none came in.

    Raises:
        InvalidInput: fewer than two vertices run, since Sluice plans the vertices after the sources.
    """
    running = [v for v in observed.vertices if v.state != "finished"]
    if len(running) < 2:
        raise InvalidInput(
            f"a job file needs a source and another vertex, but job {observed.job!r} runs as "
            f"{'one vertex' if running else 'none'}: Flink chained all of it; split the chain with disableChaining() or "
            "startNewChain(), or set the parallelism of all of it by its source"
        )
    kept = {v.id for v in running}
    joined = [e for e in edges if e.upstream in kept and e.downstream in kept]
    names, emitted = operator_names(observed.vertices), _emitted(running, joined)
    origin = f"observed for {observed.observed_s:,.0f} s on a running Flink; its keys, windows and state are unknown"
    groups = {v.max_parallelism for v in running if _keyed(v, joined)}
    return Job.model_validate(
        {
            "name": safe_name(observed.job),
            "description": f"{observed.job}, as Flink runs it.",
            "figures_from": origin,
            "key_groups": groups.pop() if len(groups) == 1 else None,
            "operators": [_operator(v, names[v.id], joined, emitted, cpu_s.get(v.id), origin) for v in running],
            "edges": [
                {
                    "from": names[e.upstream],
                    "to": names[e.downstream],
                    "partitioning": e.partitioning,
                    "share": _share(e, joined, running),
                }
                for e in dict.fromkeys(joined)
            ],
            "vertices": [{"operators": [names[v.id]], "slot_sharing_group": _group(v, running)} for v in running],
        }
    )


def _operator(
    vertex: ObservedVertex,
    name: str,
    edges: Sequence[VertexLink],
    emitted: Mapping[str, float],
    cpu_s: float | None,
    origin: str,
) -> dict[str, Any]:
    is_source, is_sink = vertex.id in emitted, all(e.upstream != vertex.id for e in edges)
    kind = Kind.SOURCE if is_source else Kind.SINK if is_sink else Kind.OPERATOR
    sent = (vertex.observed_rate or 0.0) * (vertex.selectivity or 0.0)
    operator: dict[str, Any] = {
        "name": name,
        "kind": kind,
        "flink_name": vertex.name if vertex.name_is_flinks else vertex.id,
        "description": vertex.name,
        "figures_from": origin,
        "cost": {
            "cpu_s": max(cpu_s or 0.0, _LEAST_CPU_S),
            "bytes_out": 0.0 if is_sink or sent <= 0 else (vertex.bytes_out or 0.0) / sent,
        },
    }
    if vertex.selectivity is not None and not is_sink:
        operator["selectivity"] = vertex.selectivity
    if is_source:
        operator["rate_share"] = emitted[vertex.id]
        if vertex.partitions is not None:
            operator["max_parallelism"] = vertex.partitions
    else:
        operator["max_parallelism"] = vertex.max_parallelism
    if _keyed(vertex, edges):
        operator |= {"keys": {"distinct": vertex.max_parallelism}, "state": {}}
    return operator


def _keyed(vertex: ObservedVertex, edges: Sequence[VertexLink]) -> bool:
    return any(e.partitioning is Partitioning.HASH for e in edges if e.downstream == vertex.id)


def _share(edge: VertexLink, edges: Sequence[VertexLink], vertices: Sequence[ObservedVertex]) -> float:
    """Share of the records out that take an edge: Flink counts a record out once for each edge that it takes."""
    beside = [e for e in edges if e.upstream == edge.upstream]
    if len(beside) == 1:
        return 1.0
    rates = {v.id: (v.observed_rate or 0.0, v.selectivity or 0.0) for v in vertices}
    out = rates[edge.upstream][0] * rates[edge.upstream][1]
    if out <= 0 or sum(e.downstream == edge.downstream for e in edges) > 1:
        return 1 / len(beside)
    return min(max(rates[edge.downstream][0] / out, 1e-6), 1.0)


def _emitted(vertices: Sequence[ObservedVertex], edges: Sequence[VertexLink]) -> dict[str, float]:
    """Each source's share of all records; even ones where nothing was seen."""
    with_input = {e.downstream for e in edges}
    rates = {v.id: v.observed_rate or 0.0 for v in vertices if v.id not in with_input}
    total, least = sum(rates.values()), 1e-6
    shares = {id_: max(rate / total, least) if total > 0 else 1.0 for id_, rate in rates.items()}
    return {id_: share / sum(shares.values()) for id_, share in shares.items()}


def _group(vertex: ObservedVertex, vertices: Sequence[ObservedVertex]) -> str:
    """A name for Flink's id of its group."""
    groups = list(dict.fromkeys(v.slot_group for v in vertices))
    return "default" if vertex.slot_group == groups[0] else f"group-{groups.index(vertex.slot_group) + 1}"
