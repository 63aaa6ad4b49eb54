"""Jobs with shared slots, small enough to list all of their placements."""

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from models.dataflow import Dataflow
from models.placement.shared.sharing import SharedDataflow
from models.vertices import JobVertex

Row = tuple[str, int, float, float, float]


@pytest.fixture
def share() -> Callable[..., SharedDataflow]:
    def make(
        rows: list[Row], edges: Sequence[tuple[str, str, str]] = (), groups: dict[str, str] | None = None, **fields: Any
    ) -> SharedDataflow:
        dataflow = Dataflow.model_validate(
            {
                "operators": [
                    {"name": n, "parallelism": p, "cpu": cpu, "io": io, "net": net, **fields}
                    for n, p, cpu, io, net in rows
                ],
                "edges": [{"from": u, "to": v, "partitioning": how} for u, v, how in edges],
            }
        )
        group_of = {n: (groups or {}).get(n, "default") for n, *_ in rows}
        return SharedDataflow.of(
            dataflow, [JobVertex(operators=(n,), slot_sharing_group=g) for n, g in group_of.items()]
        )

    return make
