"""What is unknown of an observed job and why, in sentences that say what to do."""

from collections.abc import Iterator, Sequence

from models.capacity.diagnosis.finding import BUSY
from models.capacity.observed.counters.counts import JobCounts
from models.capacity.observed.counters.intervals import intervals, starts_of
from models.capacity.observed.counters.settling import settled, still_falling
from models.capacity.observed.surroundings import Surroundings
from models.capacity.observed.vertices import VertexSeen, held_back
from models.capacity.observed.waiting.lag import Round, growth
from models.keys.awkward import awkward_key_groups


def remarks(
    seen: Sequence[VertexSeen],
    of_sources: Sequence[Round],
    readings: Sequence[JobCounts],
    about: Surroundings,
    *,
    waited: bool,
) -> list[str]:
    """All of them, the gravest first.

    Args:
        waited: whether records waited for long enough to see the MST.
    """
    return [
        *_of_restarts(readings, about),
        *_of_compiling(readings),
        *_of_vertices(seen),
        *_of_sources(seen, of_sources, about, waited=waited),
        *_of_state(seen, about),
        *_of_keys(seen),
    ]


def _of_restarts(readings: Sequence[JobCounts], about: Surroundings) -> Iterator[str]:
    if about.failures:
        yield (
            f"the job failed and was started again {len(about.failures)} time(s) while it was observed, the last time because "
            f"of: {about.failures[0]}; what tasks did over a restart is left out"
        )
    elif starts := starts_of(readings):
        yield f"the job was started again {len(starts)} time(s); what tasks did over a restart is left out"


def _of_compiling(readings: Sequence[JobCounts]) -> Iterator[str]:
    done = intervals(readings)
    counted = settled(readings, done)
    if (left := len({one.ended_s for one in done}) - len({one.ended_s for one in counted})) > 0:
        yield (
            f"the job had been started shortly before, and records cost clearly more in the first {left} of its readings, "
            "while Java compiles the code: they are left out of its rates"
        )
    if (cheaper := still_falling(readings, done)) is not None:
        yield (
            f"a record became {cheaper:.0%} cheaper while the job was observed, as while Java compiles its code: the job takes "
            "more than is said here; observe it again in some minutes"
        )


def _of_vertices(seen: Sequence[VertexSeen]) -> Iterator[str]:
    for one in seen:
        if one.finished:
            yield f"{one.label} has read all of its input and ended"
        elif one.tasks and one.busyness is None:
            yield f"{one.label} does not report how busy it is, as older sources do not"
        elif not one.tasks:
            yield f"Flink reported nothing of {one.label}; check that metrics are on and its tasks run, or observe for longer"


def _of_sources(
    seen: Sequence[VertexSeen], of_sources: Sequence[Round], about: Surroundings, *, waited: bool
) -> Iterator[str]:
    sources = _running_sources(seen)
    if sources and growth(of_sources) is None:
        rest = (
            "they are held back, so that what arrives is unknown"
            if held_back(seen)
            else "what they emit counts as what arrives, which holds unless they limit their own rate, as generators do"
        )
        reported = any(one.lag is not None for one in of_sources)
        yield (
            "it is unknown whether the records that wait before the sources become more, since fewer than two readings say how "
            f"many they are; observe for longer; {rest}"
            if reported
            else f"the sources do not report how many records wait before them (pendingRecords); {rest}"
        )
    elif sources and held_back(seen) and not about.lag_by_broker:
        yield (
            "the sources are held back, and report what waits as of their last fetch, so that more may arrive; give --kafka to "
            "ask the broker"
        )
    if waited and _starved(seen):
        yield (
            "records wait, but no task is busy all the time, and the sources wait for records, too: what fetches them in "
            "threads of its own, the brokers or the network limit the job, which busy times do not show; a rate that is "
            "computed from them alone is then too high"
        )
    yield from (_silent(one, about.silent[one.last.id]) for one in sources if about.silent.get(one.last.id))


def _of_state(seen: Sequence[VertexSeen], about: Surroundings) -> Iterator[str]:
    if not about.takes_checkpoints:
        waiting = " as the sources report it" if _running_sources(seen) and not about.lag_by_broker else ""
        yield (
            "the job takes no checkpoints (execution.checkpointing.interval), so that the size of its state and what its "
            f"consumer groups have read are unknown outside of it; what waits is counted{waiting} without them"
        )
    elif about.checkpoints is None:
        yield "no checkpoint was completed, so the size of the state is unknown"
    uncounted = [one.label for one in seen if one.keyed and not one.finished and one.state is None]
    if uncounted and about.counts_off is not None:
        yield (
            f"accesses to the state of {', '.join(uncounted[:3])} are not counted; {about.counts_off} in the settings of the "
            "cluster or the job turn that on"
        )


def _of_keys(seen: Sequence[VertexSeen]) -> Iterator[str]:
    for one in seen:
        warning = awkward_key_groups(f"maximum parallelism of {one.label}", one.last.max_parallelism)
        if one.keyed and not one.finished and warning is not None:
            yield warning


def _running_sources(seen: Sequence[VertexSeen]) -> list[VertexSeen]:
    return [one for one in seen if one.last.is_source and not one.finished]


def _starved(seen: Sequence[VertexSeen]) -> bool:
    """Whether no task is busy all the time, and sources are not held back either."""
    running = [one for one in seen if one.tasks and not one.finished]
    sources = [one for one in running if one.last.is_source]
    known = all(one.fullest_busyness is not None for one in running)
    idle = all((one.busyness or 0.0) + (one.backpressure or 0.0) < BUSY for one in sources)
    return known and idle and all((one.fullest_busyness or 0.0) < BUSY for one in running)


def _silent(source: VertexSeen, partitions: Sequence[str]) -> str:
    shown = ", ".join(partitions[:3]) + (f" and {len(partitions) - 3} more" if len(partitions) > 3 else "")
    return (
        f"{source.label} has read no record of {len(partitions)} of its {source.last.partitions} partitions ({shown}) since it "
        "started; where watermarks are made per partition, event time waits for them unless they are declared idle "
        "(withIdleness, table.exec.source.idle-timeout)"
    )
