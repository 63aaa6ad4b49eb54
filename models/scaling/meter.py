"""From the activity of tasks to the rates that a policy reads (DS2 section 3.1).

Notation (DS2 Table 2), for one task over an interval: R_prc records in, R_psd records out, W_u useful seconds.

    lambda_p = R_prc / W_u        true processing rate    (Eq. 1)
    lambda_o = R_psd / W_u        true output rate        (Eq. 2)
    o_i[lp]  = sum of lambda_p    over the operator's tasks (Eq. 5); the same for o_i[lo] (Eq. 6)

Rulings: a task without records in an interval has no rates there, so its last known ones stay; a task without known rates
counts as the mean of its operator's others. After a rescale only the operator's mean is known. The input and output rates
of a task are always of the same interval. An operator that never takes a record, such as what writes dead letters, is left
out after a minute, until it takes one.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Final

import numpy as np

from models.dataflow import Partitioning
from models.job import Job
from models.metrics import Activity, observed_rate, true_rate
from models.scaling.rates import OperatorMetrics, Rates

_BYTES_PER_MB: Final = 2.0**20
_SILENT_S: Final = 60.0
"""An operator that has taken no record for this long, while the job read some, does not hold back the rates of others."""
_AT_THE_END: Final = frozenset({"input_queue_share", "lag_records", "state_bytes"})
"""Fields of Activity that hold at its end; the others add up, except for `keeps_state`."""


@dataclass(frozen=True)
class MeteredGraph:
    """What a meter knows of a job beforehand."""

    edges: tuple[tuple[str, str], ...]
    """Upstream and downstream operator."""
    shares: Mapping[str, float]
    """Share of all arriving records, by source."""
    limits: Mapping[str, Mapping[str, int | None]]
    """`max_parallelism`, `key_groups` and `partitions` of each operator, as in `OperatorMetrics`."""
    edge_shares: Mapping[str, dict[str, float]] | None = None
    """As in `Rates`; None: measured."""
    source_selectivity: Mapping[str, float] = field(default_factory=dict)
    """As in `Rates`; measured at the sources that are left out."""

    @classmethod
    def of(cls, job: Job) -> "MeteredGraph":
        """Of a job's file. It says what sources emit, which so has not the noise of two counters."""
        shares = {o.name: o.rate_share for o in job.sources}
        hashed = {e.downstream for e in job.edges if e.partitioning is Partitioning.HASH}
        limits = {
            o.name: {
                "max_parallelism": o.max_parallelism,
                "key_groups": job.key_groups if o.name in hashed else None,
                "partitions": o.max_parallelism if o.name in shares else None,
            }
            for o in job.operators
        }
        divided: dict[str, dict[str, float]] = {}
        for e in (e for e in job.edges if e.share < 1):
            divided.setdefault(e.upstream, {})[e.downstream] = e.share
        selectivity = {o.name: o.selectivity for o in job.sources}
        return cls(tuple((e.upstream, e.downstream) for e in job.edges), shares, limits, divided, selectivity)


class Meter:
    """Collects the activity of an interval, and remembers true rates from one interval to the next."""

    def __init__(self, graph: MeteredGraph) -> None:
        self._graph = graph
        self._shares = dict(graph.shares)
        self._selectivity = dict(graph.source_selectivity)
        self._edge_shares = dict(graph.edge_shares or {})
        self._memory_mb: Mapping[str, float] = {}
        self._true: dict[str, _TrueRates] = {}
        self._read_s = 0.0
        """Time of all intervals in which sources read."""
        self.restart()

    @property
    def seconds(self) -> float:
        """How long the job has run in the current interval."""
        return self._seconds

    def restart(self) -> None:
        """Begin another interval."""
        self._activity: dict[str, Activity] = {}
        self._seconds = 0.0
        self._arrived = 0.0

    def deployed(self, parallelism: Mapping[str, int], memory_mb: Mapping[str, float]) -> None:
        """The job now runs with these tasks and this managed memory per task, MiB; an interval begins."""
        self._memory_mb = dict(memory_mb)
        self._true = {
            name: self._true[name].spread(tasks) if name in self._true else _TrueRates.unknown(tasks)
            for name, tasks in parallelism.items()
        }
        self.restart()

    def record(
        self, activity: Mapping[str, Activity], arrival_rate: float, shares: Mapping[str, float] | None = None
    ) -> None:
        """Add what the operators did while records came in at `arrival_rate`, records/s over all sources.

        Args:
            shares: of the sources from now on, where these change; adding up to 1.
        """
        if not activity:
            return
        self._shares.update(shares or {})
        seconds = next(iter(activity.values())).seconds
        self._seconds += seconds
        self._arrived += arrival_rate * seconds
        for name, done in activity.items():
            before = self._activity.get(name)
            self._activity[name] = done if before is None else _merged(before, done)

    def read(self) -> Rates | None:
        """The rates of the interval, which ends here; None while operators are unknown that may yet take their first record.

        The rate at which a source must read is that at which records came in for it.
        """
        activity, seconds, arrived = self._activity, self._seconds, self._arrived
        self.restart()
        if not seconds:
            return None
        for name, done in activity.items():
            self._true[name].update(done)
        self._measure_selectivity(activity)
        if self._graph.edge_shares is None:
            self._measure_edge_shares(activity)
        if any(name in activity and activity[name].records_in.any() for name in self._shares):
            self._read_s += seconds
        edges = self._known_edges()
        if not edges:
            return None
        there = {name for edge in edges for name in edge}
        rates = {name: arrived / seconds * share for name, share in self._shares.items() if name in there}
        shares = {up: {d: s for d, s in to.items() if (up, d) in edges} for up, to in self._edge_shares.items()}
        return Rates(
            edges=edges,
            source_rates=rates,
            source_selectivity={name: share for name, share in self._selectivity.items() if name in there},
            edge_shares={upstream: to for upstream, to in shares.items() if to},
            operators={
                name: self._metrics(name, done, rates.get(name)) for name, done in activity.items() if name in there
            },
        )

    def _known_edges(self) -> tuple[tuple[str, str], ...]:
        """Edges to operators whose rates are known; none while one of the others may be about to take its first record."""
        edges = self._graph.edges
        silent = {name for name, true in self._true.items() if name not in self._shares and not true.is_known}
        if not silent:
            return edges
        known = tuple((upstream, name) for upstream, name in edges if not silent & {upstream, name})
        fed = {name for _, name in known}
        # A window may emit what it took before the first reading: then nothing says what its receivers take.
        emits = any(name not in silent | fed for _, name in edges)
        return () if emits or self._read_s < _SILENT_S else known

    def _measure_selectivity(self, activity: Mapping[str, Activity]) -> None:
        """Of sources; the last known one stays where nothing is emitted."""
        for name in activity.keys() & self._shares.keys() - self._graph.source_selectivity.keys():
            taken, sent = (float(records.sum()) for records in (activity[name].records_in, activity[name].records_out))
            if taken > 0 and sent > 0:
                self._selectivity[name] = sent / taken

    def _measure_edge_shares(self, activity: Mapping[str, Activity]) -> None:
        """Of operators with several edges, for each of which Flink counts a record out once; the last known ones stay where
        nothing is emitted.

        What an operator takes came over its edge; where it has several, equal shares are assumed.
        """
        edges = self._graph.edges
        sent_over, taken_from = Counter(up for up, _ in edges), Counter(down for _, down in edges)
        for upstream, downstream in edges:
            sent = float(activity[upstream].records_out.sum()) if upstream in activity else 0.0
            if sent_over[upstream] > 1 and sent > 0:
                only = taken_from[downstream] == 1
                share = float(activity[downstream].records_in.sum()) / sent if only else 1 / sent_over[upstream]
                self._edge_shares.setdefault(upstream, {})[downstream] = share

    def _metrics(self, name: str, done: Activity, arrival_rate: float | None) -> OperatorMetrics:
        processing, output = self._true[name].sums()
        observed = observed_rate(float(done.records_in.sum()), done.seconds)
        hits = float(done.cache_hits.sum())
        accesses = hits + float(done.cache_misses.sum())
        return OperatorMetrics(
            parallelism=len(done.busy_s),
            true_processing_rate=processing,
            true_output_rate=output,
            observed_input_rate=observed,
            observed_output_rate=observed_rate(float(done.records_out.sum()), done.seconds),
            busyness=_share(done.busy_s, done.seconds),
            max_busyness=min(float(done.busy_s.max()) / done.seconds, 1.0),
            backpressure=_share(done.backpressured_s, done.seconds),
            idleness=_share(done.idle_s, done.seconds),
            input_queue_share=None if arrival_rate is not None else _share(done.input_queue_share, 1.0),
            lag_records=None if arrival_rate is None else float(done.lag_records.sum()),
            lag_change_per_s=None if arrival_rate is None else arrival_rate - observed,
            cpu_cores=float(done.cpu_s.sum()) / done.seconds,
            memory_mb=self._memory_mb.get(name),
            cache_hit_rate=hits / accesses if accesses else None,
            state_latency_s=float(done.state_time_s.sum()) / accesses if done.keeps_state and accesses else None,
            state_mb=float(done.state_bytes.sum()) / _BYTES_PER_MB if done.keeps_state else None,
            **self._graph.limits[name],
        )


def _share(values: np.ndarray, whole: float) -> float:
    """Mean over the tasks of a share, clipped since rounding may carry it past 0 or 1."""
    return min(max(float(values.sum()) / (len(values) * whole), 0.0), 1.0)


def _merged(before: Activity, after: Activity) -> Activity:
    """The joint activity of the same tasks in two consecutive periods."""
    values = {f.name: getattr(after, f.name) for f in fields(Activity)}
    added = values.keys() - _AT_THE_END - {"keeps_state"}
    return Activity(**values | {name: getattr(before, name) + values[name] for name in added})


@dataclass
class _TrueRates:
    """The last known true rates of an operator's tasks, records/s; 0 where `known` is False. All arrays [tasks]."""

    processing: np.ndarray
    output: np.ndarray
    known: np.ndarray

    @classmethod
    def unknown(cls, tasks: int) -> "_TrueRates":
        return cls(np.zeros(tasks), np.zeros(tasks), np.zeros(tasks, dtype=bool))

    @property
    def is_known(self) -> bool:
        """Whether the rates of at least one task are known."""
        return bool(np.any(self.known))

    def update(self, done: Activity) -> None:
        worked = (done.records_in > 0) & (done.busy_s > 0)
        self.processing[worked] = true_rate(done.records_in[worked], done.busy_s[worked])
        self.output[worked] = true_rate(done.records_out[worked], done.busy_s[worked])
        self.known |= worked

    def sums(self) -> tuple[float | None, float | None]:
        """Sums over all tasks (Eq. 5, 6); None if no rates are known."""
        if not self.is_known:
            return None, None
        count = len(self.known)
        return (
            float(np.mean(self.processing[self.known])) * count,
            float(np.mean(self.output[self.known])) * count,
        )

    def spread(self, tasks: int) -> "_TrueRates":
        """Rates carried over to new tasks of the same operator."""
        processing, output = self.sums()
        if processing is None or output is None:
            return self.unknown(tasks)
        before = len(self.known)
        return _TrueRates(
            np.full(tasks, processing / before), np.full(tasks, output / before), np.ones(tasks, dtype=bool)
        )
