"""Replays as a Spark job, for more cells than one machine can handle."""

from collections.abc import Iterator, Mapping

from pipelines.arena.replays.cell import Cell, CellResult
from pipelines.arena.replays.compute import run_cell


def replay_on_spark(cells: Mapping[str, Cell]) -> Iterator[tuple[str, CellResult]]:
    """A `pipelines.arena.grid.Compute`: `run_cell` over the cells, on the master of `spark.session`.

    Executors run Python with numpy, numba and the other imports of the simulator; Sluice's own code is sent to them.
    """
    if not cells:
        return
    # Spark takes long to import, which other evaluations do not need.
    import models
    import pipelines
    import spark
    import testbeds
    from spark.mapping import map_each
    from spark.session import session

    results = map_each(session(), run_cell, list(cells.values()), (models, pipelines, spark, testbeds))
    yield from zip(cells, results, strict=True)
