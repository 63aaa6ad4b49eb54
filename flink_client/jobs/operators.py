"""The operators in the names of a job's vertices, and the vertex of each operator of a plan."""

import re
from collections.abc import Collection, Mapping, Sequence
from typing import Protocol

from models.errors import InvalidInput

_ROLE = re.compile(r"^(Source|Sink): ")
_ADDED_BY_SQL = re.compile(r"(\[\d+\])?(: Writer)?$")
"""SQL numbers its operators, and names a table's sink `orders[7]: Writer`."""


class NamedVertex(Protocol):
    """A vertex with its names."""

    @property
    def id(self) -> str: ...

    @property
    def name(self) -> str:
        """Flink's name, such as `Source: clicks -> parse`."""
        ...

    @property
    def operators(self) -> tuple[str, ...]:
        """Names of the operators chained in it."""
        ...


def chained_operators(vertex: str) -> tuple[str, ...]:
    """The operators in the name of a vertex: parts of a chain `a -> b` or, where it forks, `a -> (b, c -> d)`.

    The prefixes `Source: ` and `Sink: ` are left out, and so are the suffixes of SQL (`[7]`, `: Writer`).
    """
    return tuple(_ADDED_BY_SQL.sub("", _ROLE.sub("", part)) for part in _parts(vertex))


def _parts(vertex: str) -> tuple[str, ...]:
    """The operators in the name of a vertex, as Flink writes them."""
    parts: list[str] = []
    forks = 0
    for piece in vertex.strip().split(" -> "):
        inner = piece.lstrip("(")
        forks += len(piece) - len(inner)
        for part in inner.split(", ") if forks else [inner]:
            while forks and part.count(")") > part.count("("):
                part, forks = part.removesuffix(")"), forks - 1
            parts.append(part)
    return tuple(parts)


def map_operators(
    operators: Collection[str], vertices: Sequence[NamedVertex], flink_names: Mapping[str, str]
) -> dict[str, str]:
    """Vertex id of each operator of a plan: the vertex that has the operator's exact name in its chain.

    Args:
        flink_names: what Flink calls the operators that have another name there: an operator, a vertex, or a vertex id.

    Raises:
        InvalidInput: an operator is in no vertex or in several; the message lists operators and vertices.
    """
    found = {
        name: _called(flink_names[name], vertices) if name in flink_names else _having(name, vertices)
        for name in operators
    }
    for name, ids in found.items():
        if len(ids) != 1:
            running = ", ".join(f"{v.name!r} ({v.id})" for v in vertices)
            called = f", which Flink calls {flink_names[name]!r:.200}," if name in flink_names else ""
            raise InvalidInput(
                f"operator {name!r} of the plan{called} is in {'no vertex' if not ids else f'{len(ids)} vertices'} of the "
                f"running job; the plan has {', '.join(operators)}, the job runs {running}; give the operators of the "
                f"job these names, name the vertices in the job's file (flink_name of the operator), or give --vertices FILE "
                f"with {{operator: vertexId}}"
            )
    return {name: ids[0] for name, ids in found.items()}


def _having(operator: str, vertices: Sequence[NamedVertex]) -> list[str]:
    return [v.id for v in vertices if operator in v.operators]


def _called(name: str, vertices: Sequence[NamedVertex]) -> list[str]:
    """Vertices of this id or whole name; else those with it in their chain, literally or without role and number."""
    whole = [v.id for v in vertices if name in (v.id, v.name)]
    return whole or [v.id for v in vertices if name in _parts(v.name)] or _having(name, vertices)
