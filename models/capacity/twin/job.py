"""The job that a twin simulates: the dataflow of the real one, with the figures that were seen while it was measured.

Of the real job's file it takes what is stated by its program: operators and edges, windows and times to live, key groups and
limits of parallelism. Costs, selectivities, bytes, state and keys are those seen; what the file says of them does not count.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from models.errors import InvalidInput
from models.job import Cost, Job, Keys, Operator, State


@dataclass(frozen=True)
class OperatorSeen:
    """Figures of one operator, from samples."""

    cpu_s: float
    """CPU seconds per record in."""
    external_wait_s: float = 0.0
    """Seconds per record in that its task waits outside the job, without CPU time."""
    selectivity: float = 1.0
    """Records out per record in."""
    bytes_out: float = 0.0
    """Bytes per record out."""
    state_read_bytes: float = 0.0
    """Per record in."""
    state_write_bytes: float = 0.0
    """Per record in."""
    fire_share: float = 0.0
    """Share of the cost that is paid when windows fire."""
    live_bytes_per_record: float = 0.0
    """State that a record adds while its window or time to live lasts, and that is read again."""
    key_bytes: float = 0.0
    """State of all keys together, where neither a window nor a time to live limits it."""
    rate_share: float = 1.0
    """Sources: share of the job's source rate."""
    keys: Keys | None = None
    """Of an input that is hash-partitioned."""


def twin_job(job: Job, seen: Mapping[str, OperatorSeen], origin: str) -> Job:
    """The job to simulate.

    Args:
        job: the real one.
        seen: figures of every operator.
        origin: where they come from, in words.

    Raises:
        InvalidInput: an operator has no figures.
    """
    missing = [o.name for o in job.operators if o.name not in seen]
    if missing:
        raise InvalidInput(f"a twin needs figures of every operator, but there are none of {', '.join(missing)}")
    return Job(
        # Another name than the job's: the simulator draws the keys of unknown inputs by it.
        name=f"twin-of-{job.name}",
        description=f"The twin of {job.name}.",
        figures_from=origin,
        key_groups=job.key_groups,
        operators=tuple(_operator(o, seen[o.name], origin) for o in job.operators),
        edges=job.edges,
    )


def fires_every_s(job: Job, name: str) -> float | None:
    """How often the windows of the nearest operator before this one fire, seconds; None without such windows."""
    reached = [e.upstream for e in job.upstream_edges(name)]
    for upstream in reached:
        window = job.operator(upstream).window
        if window is not None:
            return window.firing_interval_s
        reached += [e.upstream for e in job.upstream_edges(upstream)]
    return None


def live_s(operator: Operator) -> float | None:
    """How long a record stays in an operator's state, seconds; None where nothing limits it."""
    if operator.window is not None:
        return operator.window.length_s
    return operator.state.ttl_s if operator.state is not None else None


def _operator(operator: Operator, seen: OperatorSeen, origin: str) -> Operator:
    window = operator.window
    if window is not None:
        share = seen.fire_share if seen.selectivity > 0 else 0.0
        window = window.model_copy(update={"fire_share": share})
    return Operator(
        name=operator.name,
        kind=operator.kind,
        cost=Cost(
            cpu_s=seen.cpu_s,
            external_wait_s=seen.external_wait_s,
            state_read_bytes=seen.state_read_bytes,
            state_write_bytes=seen.state_write_bytes,
            bytes_out=seen.bytes_out,
        ),
        selectivity=seen.selectivity,
        rate_share=seen.rate_share,
        window=window,
        keys=seen.keys,
        state=_state(operator, seen),
        max_parallelism=operator.max_parallelism,
        figures_from=origin,
    )


def _state(operator: Operator, seen: OperatorSeen) -> State | None:
    lives_s = live_s(operator)
    if lives_s is None:
        if seen.key_bytes == 0 or seen.keys is None:
            return None
        return State(bytes_per_key=seen.key_bytes / seen.keys.distinct)
    ttl_s = None if operator.window is not None else lives_s
    return State(bytes_per_record=seen.live_bytes_per_record, ttl_s=ttl_s)
