"""From readings of a running job's counters to what was observed: rates, what bounds it, and how far it would go."""

import math
from collections import Counter
from collections.abc import Sequence
from typing import Final

from models.capacity.diagnosis.bound_by import BoundBy
from models.capacity.diagnosis.diagnose import diagnose
from models.capacity.diagnosis.facts import HELD_BACK, BoundFacts, OperatorFacts
from models.capacity.diagnosis.rates import saturating_rate
from models.capacity.observed.counters.counts import JobCounts
from models.capacity.observed.counters.intervals import TaskInterval, cpu_shares, intervals, starts_of
from models.capacity.observed.counters.settling import settled
from models.capacity.observed.record import (
    ObservedCapacity,
    ObservedJob,
    ObservedVertex,
    ObservedWorker,
)
from models.capacity.observed.remarks import remarks
from models.capacity.observed.surroundings import Surroundings
from models.capacity.observed.vertices import VertexSeen, held_back
from models.capacity.observed.waiting.lag import Round, arriving, at_capacity, consumption, growth, mst_seen, rounds
from models.dataflow import Partitioning
from models.errors import InvalidInput
from models.plan.parts import Interval
from models.wording import amount

FEWEST_READINGS: Final = 2
IDLE_RATE: Final = 1e-9
LATE_S: Final = 2.0
"""By how much the freshest counters are older than what the broker says at most: a refresh is asked for before each reading."""
UNSEEN: Final = 0.1
"""Standard deviation of log MST that is computed from busyness, at full busyness."""
UNSEEN_PER_FACTOR: Final = 0.25
"""The same for each factor e between the rate that was seen and the MST: a record costs another time under another load."""
UNSEEN_IDLE: Final = 0.27
"""The same upwards for a task that is idle all the time, by the root of the share that it is: a record costs the more, the
fewer come at a time. Drains took so much more than was computed at 0.3 to 0.85 of them, and 1 % less at most
(benchmarks/flink.md)."""
Z_95: Final = 1.96
LONGEST_LABEL: Final = 100
"""Characters of a vertex's name that are shown."""
MOST_BUFFERED: Final = 2.0
"""A larger factor between what is sent and taken is none of buffers: Flink counts a record out once for each edge."""


def observe(readings: Sequence[JobCounts], about: Surroundings) -> ObservedJob:
    """What the readings show.

    Raises:
        InvalidInput: there are fewer than two.
    """
    if len(readings) < FEWEST_READINGS:
        raise InvalidInput(
            f"a job is observed by at least {FEWEST_READINGS} readings, but there are {len(readings)}; observe for longer"
        )
    seen = vertices_seen(readings, about)
    of_sources = rounds(readings, intervals(readings))
    compiled = rounds(readings, counting(readings))
    starts = starts_of(readings)
    facts = observed_facts(readings, about)
    capacity = _capacity(facts, compiled, starts, LATE_S if about.lag_by_broker else 0.0)
    waited = capacity is not None and capacity.seen
    lag = next((one.lag for one in reversed(of_sources) if one.lag is not None), None)
    return ObservedJob(
        job=about.name,
        id=about.id,
        observed_s=readings[-1].time_s - readings[0].time_s,
        restarts=max(len(starts), len(about.failures)),
        vertices=tuple(_vertex(one, about) for one in seen),
        consumed_rate=consumption(of_sources) if of_sources else None,
        arriving_rate=_arriving(seen, of_sources),
        lag_records=lag,
        lag_growth=growth(of_sources),
        watermark_lag_s=about.watermark_lag_s,
        bound_by=_nothing_ran() if facts is None else _bound(facts),
        capacity=capacity,
        checkpoints=about.checkpoints,
        workers=_workers(readings),
        remarks=tuple(remarks(seen, of_sources, readings, about, waited=waited)),
    )


def vertices_seen(readings: Sequence[JobCounts], about: Surroundings) -> tuple[VertexSeen, ...]:
    """The vertices of the last reading with all that their tasks did."""
    last, done = readings[-1].vertices, intervals(readings)
    compiled = settled(readings, done)
    names = Counter(v.name for v in last)
    labels = {v.id: _label(v.name, v.id, alone=names[v.name] == 1) for v in last}
    return tuple(
        VertexSeen(
            last=v,
            label=labels[v.id],
            upstream=tuple(labels[e.upstream] for e in about.edges if e.downstream == v.id),
            keyed=any(e.partitioning is Partitioning.HASH for e in about.edges if e.downstream == v.id),
            intervals=tuple(one for one in done if one.vertex == v.id),
            compiled=tuple(one for one in compiled if one.vertex == v.id),
        )
        for v in last
    )


def counting(readings: Sequence[JobCounts]) -> list[TaskInterval]:
    """The intervals from which costs are taken."""
    return settled(readings, intervals(readings))


def _label(name: str, id_: str, *, alone: bool) -> str:
    """What a vertex is called here: sentences with the whole of a chain of ten operators are hard to read."""
    if len(name) > LONGEST_LABEL:
        return f"{name[:LONGEST_LABEL].rstrip()}... [{id_[:6]}]"
    return name if alone else f"{name} [{id_[:6]}]"


def observed_facts(readings: Sequence[JobCounts], about: Surroundings) -> BoundFacts | None:
    """How busy each vertex is at the rate that the sources emit; None where nothing ran.

    While buffers fill or drain, a vertex takes fewer or more records than those before it send: its busyness is that of
    taking all of them, which may be above 1.
    """
    running = [one for one in vertices_seen(readings, about) if one.tasks and not one.finished]
    rate = consumption(rounds(readings, counting(readings)))
    if not running or rate <= IDLE_RATE:
        return None
    used, sent = cpu_shares(readings), _sent_over_taken(running, about)
    uses = [used[name] / cores for name, cores in about.cores.items() if name in used]
    return BoundFacts(
        rate=rate,
        measured=True,
        operators=tuple(_scaled(one.facts(), sent[one.last.id]) for one in running),
        cores_use=max(uses, default=None),
    )


def _sent_over_taken(running: Sequence[VertexSeen], about: Surroundings) -> dict[str, float]:
    """For each vertex, by id: records that it would take if no buffer filled or drained, over those that it took."""
    seen = {one.last.id: one for one in running}
    found: dict[str, float] = {}
    for one in running:  # in topological order
        before = [e.upstream for e in about.edges if e.downstream == one.last.id and e.upstream in seen]
        out = [found[up] * (seen[up].records_out or 0.0) for up in before]
        # Of a vertex that sends to several, it is unknown which records went where.
        alone = all(sum(e.upstream == up for e in about.edges) == 1 for up in before)
        taken = one.records_in or 0.0
        ratio = sum(out) / taken if before and alone and taken > 0 else 1.0
        found[one.last.id] = ratio if 1 / MOST_BUFFERED <= ratio <= MOST_BUFFERED else 1.0
    return found


def _bound(facts: BoundFacts) -> BoundBy:
    """What bounds the job now or, where nothing does, what would at the rate that fills its tightest task."""
    now = diagnose(facts)
    rate = saturating_rate(facts)
    held_back = any((o.backpressure or 0.0) > HELD_BACK for o in facts.operators)
    if now.cause != "unknown" or rate is None or held_back:
        return now
    factor = rate / facts.rate
    return diagnose(
        BoundFacts(
            rate=rate,
            measured=False,
            operators=tuple(_scaled(o, factor) for o in facts.operators),
            cores_use=None if facts.cores_use is None else facts.cores_use * factor,
        )
    )


def _scaled(operator: OperatorFacts, factor: float) -> OperatorFacts:
    """Its facts at another rate."""
    times = ("busyness", "fullest_busyness", "peak_busyness")
    known = {name: getattr(operator, name) for name in times}
    return operator.model_copy(update={n: value * factor for n, value in known.items() if value is not None})


def _nothing_ran() -> BoundBy:
    return BoundBy(
        vertex=None,
        cause="unknown",
        sentence="the sources emitted nothing while the job was observed",
        remedy=None,
        no_effect_because="no records were seen",
    )


def _arriving(seen: Sequence[VertexSeen], of_sources: Sequence[Round]) -> float | None:
    """What arrives; without a lag what is consumed, unless the sources are held back or busy all the time."""
    if not of_sources:
        return None
    found = arriving(of_sources)
    return found if found is not None or held_back(seen) else consumption(of_sources)


def _capacity(
    facts: BoundFacts | None, of_sources: Sequence[Round], starts: Sequence[float], late_s: float
) -> ObservedCapacity | None:
    full = at_capacity(of_sources, starts, late_s)
    if (mst := mst_seen(full)) is not None:
        seconds = sum(one.seconds for one in full)
        return ObservedCapacity(
            mst=mst,
            seen=True,
            reason=f"records waited for {seconds:,.0f} s, in which nothing but the job itself limited what it took",
        )
    value = None if facts is None else saturating_rate(facts)
    if facts is None or value is None:
        return None
    computed = _with_spread(value, value / facts.rate)
    # A rate that was sustained is not above the MST.
    low = min(max(computed.low, facts.rate), value)
    return ObservedCapacity(
        mst=computed.model_copy(update={"low": low}),
        seen=False,
        reason=f"computed from how busy its tasks were at {amount(facts.rate)} records/s, since no backlog was seen",
    )


def _with_spread(rate: float, factor: float) -> Interval:
    """A rate that was not seen, with its 95 % interval.

    Args:
        factor: between what was seen and the load at which the rate holds.
    """
    factor = max(factor, 1.0)
    down = math.hypot(UNSEEN, UNSEEN_PER_FACTOR * math.log(factor))
    up = math.hypot(down, UNSEEN_IDLE * math.sqrt(1 - 1 / factor))
    return Interval(value=rate, low=rate * math.exp(-Z_95 * down), high=rate * math.exp(Z_95 * up))


def _saturated_rate(one: VertexSeen) -> Interval | None:
    rate, busyness = one.true_rate, one.busyness
    return _with_spread(rate, 1 / busyness) if rate is not None and busyness else None


def _vertex(one: VertexSeen, about: Surroundings) -> ObservedVertex:
    return ObservedVertex(
        id=one.last.id,
        name=one.label,
        name_is_flinks=one.label == one.last.name,
        operators=one.last.operators,
        parallelism=one.parallelism,
        max_parallelism=one.last.max_parallelism,
        slot_group=one.last.slot_group,
        state="finished" if one.finished else "running" if all(t.runs for t in one.last.tasks) else "starting",
        observed_rate=one.records_in,
        true_rate=one.true_rate,
        saturated_rate=_saturated_rate(one),
        busyness=one.busyness,
        fullest_busyness=one.fullest_busyness,
        backpressure=one.backpressure,
        selectivity=one.selectivity,
        fullest_share=one.fullest_share,
        bytes_out=one.bytes_out,
        state_bytes=about.state_bytes.get(one.last.id),
        state_read=None if one.state is None else one.state.read_bytes,
        state_written=None if one.state is None else one.state.written_bytes,
        cache_hit_rate=one.cache_hit_rate,
        partitions=one.last.partitions if one.last.is_source else None,
    )


def _workers(readings: Sequence[JobCounts]) -> tuple[ObservedWorker, ...]:
    used, known = cpu_shares(readings), [r for r in readings if r.workers]
    if not known:
        return ()
    first, last = known[0], known[-1]
    found = []
    for name, worker in last.workers.items():
        gc_s = [one.workers[name].gc_s for one in (first, last) if name in one.workers]
        spent = None
        if len(gc_s) == 2 and gc_s[0] is not None and gc_s[1] is not None and last.time_s > first.time_s:
            spent = min(max(gc_s[1] - gc_s[0], 0.0) / (last.time_s - first.time_s), 1.0)
        heap = None if worker.heap_used is None else min(worker.heap_used, 1.0)
        found.append(ObservedWorker(name=name, cores=used.get(name), gc_share=spent, heap_used=heap))
    return tuple(found)
