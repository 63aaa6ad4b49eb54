"""The steps of applying a plan, in words."""

from collections.abc import Iterator

from flink_client.jobs.deployment import RunningJob
from models.wording import tasks
from pipelines.apply.applied import VertexChange
from pipelines.apply.preparation import Preparation


def steps(preparation: Preparation, *, timeout_s: float, observe_s: float) -> list[str]:
    """The steps in order; none if Flink runs the plan already."""
    if preparation.method == "none":
        return []
    return [
        *_move(preparation),
        *_parallelism(preparation),
        f"wait until all tasks run as planned; after {timeout_s:g} s restore the present state",
        *([f"observe the job for {observe_s:g} s"] if observe_s > 0 else []),
    ]


def _move(preparation: Preparation) -> Iterator[str]:
    move = preparation.move
    if move is None:
        return
    yield f"write the placement to {move.file}, which the placement hook reads"
    if move.detour is not None:
        ((vertex, count),) = ((v, n) for v, n in move.detour.items() if n != preparation.wanted[v])
        name = preparation.job.vertex(vertex).name
        yield f"give {name} {tasks(count)} for a moment, since Flink places tasks only when their number changes"


def _parallelism(preparation: Preparation) -> Iterator[str]:
    job, changed = preparation.job, [c for c in preparation.changes if c.before != c.after]
    listed = ", ".join(f"{c.name} {c.before} -> {c.after}" for c in changed) or "the same tasks again"
    if preparation.restart is None:
        yield f"request {listed} (PUT /jobs/{job.id}/resource-requirements)"
        return
    yield f"take a savepoint below {preparation.restart.savepoints} and cancel job {job.id}"
    yield f"start {preparation.restart.program.entry_class} from it with {listed}"


def rows(job: RunningJob, changes: tuple[VertexChange, ...]) -> Iterator[tuple[str, str, str, str]]:
    """Operators, vertex, tasks now and tasks in the plan; vertices outside of the plan come last."""
    known = {c.vertex for c in changes}
    for c in changes:
        yield ", ".join(c.operators), c.name, str(c.before), str(c.after)
    for vertex in job.vertices:
        if vertex.id not in known:
            yield "-", vertex.name, str(vertex.parallelism), "unchanged"
