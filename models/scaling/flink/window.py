"""The metrics window: measurements since the job has settled, and their means."""

import math
from collections import deque
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from models.scaling.flink.metrics import MetricMeans, mean_rate, observed_true_rate
from models.scaling.flink.settings import FlinkSettings
from models.scaling.flink.topology import Topology
from models.scaling.rates import OperatorMetrics, Rates

_CLOCK_S: Final = 1e-6
"""Times closer than this are equal."""


@dataclass(frozen=True)
class Sample:
    """Rates over one interval; arrays are float64[operators]."""

    records_in: np.ndarray
    records_out: np.ndarray
    busy: np.ndarray
    arriving: np.ndarray
    lag: np.ndarray
    all_measured: bool
    """Whether the observed rate of every operator is known; if not, true rates replace them."""
    unrated: frozenset[int]
    """Operators whose busy share is unknown, so that they cannot be scaled."""
    observed: dict[int, float]
    """True rates of the sources that were observed in this interval."""

    @classmethod
    def of(cls, rates: Rates, topology: Topology, settings: FlinkSettings) -> "Sample":
        operators = [rates.operators.get(name) for name in topology.names]
        by_max = settings.busy_time_aggregator == "MAX"
        selectivity = [rates.source_selectivity.get(name, 1.0) for name in topology.names]
        flows = [_flow(metrics, by_max, out) for metrics, out in zip(operators, selectivity, strict=True)]
        read, sent, busy = np.array([(i, o, 0.0 if b is None else b) for i, o, b in flows]).T
        arriving, lag = np.zeros((2, len(operators)))
        observed: dict[int, float] = {}
        for source in topology.sources:
            metrics = operators[source]
            lag[source] = (metrics and metrics.lag_records) or 0.0
            arriving[source] = _arriving(metrics, rates.source_rates[topology.names[source]])
            rate = _observed(metrics, lag[source], settings.observed_rate_lag_s)
            if rate is not None:
                observed[source] = rate
        return cls(
            records_in=read,
            records_out=sent,
            busy=busy,
            arriving=arriving,
            lag=lag,
            all_measured=all(m is not None and m.observed_input_rate is not None for m in operators),
            unrated=frozenset(i for i, flow in enumerate(flows) if flow[2] is None),
            observed=observed,
        )

    def window(self, topology: Topology) -> MetricMeans:
        """A window of this interval alone."""
        return _window([self], np.ones(1), self.observed, topology)


def _flow(
    metrics: OperatorMetrics | None, by_max: bool, source_selectivity: float
) -> tuple[float, float, float | None]:
    """Records/s in and out, and busy share, None if unknown. Without observed rates, the true rates."""
    if metrics is None:
        return 1.0, source_selectivity, None
    true_in, true_out = metrics.true_processing_rate, metrics.true_output_rate
    read = metrics.observed_input_rate
    if read is None:
        # A source may report only its output rate.
        rate = true_in or true_out
        return (rate, true_out if true_in and true_out is not None else rate, 1.0) if rate else (1.0, 1.0, None)
    sent = metrics.observed_output_rate
    if sent is None:
        sent = read * true_out / true_in if true_in and true_out is not None else read
    busy = metrics.max_busyness if by_max and metrics.max_busyness is not None else metrics.busyness
    if busy is None and true_in:
        busy = min(1.0, read / true_in)
    return read, sent, busy


def _arriving(metrics: OperatorMetrics | None, wanted: float) -> float:
    """Records/s that arrive at a source: the rate read plus the growth of the lag or, if unknown, its target."""
    if metrics is None or metrics.observed_input_rate is None or metrics.lag_change_per_s is None:
        return wanted
    return metrics.observed_input_rate + metrics.lag_change_per_s


def _observed(metrics: OperatorMetrics | None, lag: float, lag_threshold_s: float) -> float | None:
    if metrics is None or metrics.observed_input_rate is None:
        return None
    return observed_true_rate(metrics.observed_input_rate, lag, metrics.backpressure or 0.0, lag_threshold_s)


def _window(
    samples: list[Sample], weights: np.ndarray, observed_true_rates: dict[int, float], topology: Topology
) -> MetricMeans:
    means = np.tensordot(
        weights / weights.sum(), np.array([(s.records_in, s.records_out, s.busy, s.arriving) for s in samples]), axes=1
    )
    read, sent, busy, arriving = means
    if all(sample.all_measured for sample in samples):
        ratios = topology.edge_ratios(read, sent)
    else:
        selectivity = np.divide(sent, read, out=np.zeros_like(read), where=read > 0)
        ratios = selectivity[topology.upstream] * topology.shares
    return MetricMeans(read, sent, busy, arriving, samples[-1].lag, ratios, observed_true_rates)


@dataclass(frozen=True)
class _Interval:
    start_s: float
    end_s: float
    sample: Sample
    observed: dict[int, float]
    """As in the sample; if nothing could be observed, the mean of the values before."""


class MetricWindow:
    """Intervals since the job settled, no older than the window."""

    def __init__(self, settings: FlinkSettings) -> None:
        self._settings = settings
        self._intervals: deque[_Interval] = deque()
        self._before: Sample | None = None
        """Of the interval before them."""

    def clear(self) -> None:
        self._intervals.clear()
        self._before = None

    def add(self, sample: Sample, time_s: float, interval_s: float, running_since_s: float) -> str | None:
        """Add the measurements of an interval; return why they are not enough for a decision, or None.

        Args:
            time_s: when the interval ended, seconds.
            interval_s: how long it was, seconds.
            running_since_s: when the job was last started.
        """
        settled_s = running_since_s + self._settings.stabilization_interval_s
        if self._intervals and self._intervals[0].start_s < settled_s - _CLOCK_S:
            self.clear()
        start_s = time_s - interval_s
        if start_s < settled_s - _CLOCK_S:
            self._before = sample
            return f"the job is left to settle for {self._settings.stabilization_interval_s:g} s after its start"
        self._intervals.append(_Interval(start_s, time_s, sample, self._filled(sample)))
        window_s = self._settings.metrics_window_s
        missing_s = window_s - (time_s - self._intervals[0].start_s)
        if missing_s > _CLOCK_S:
            return f"{missing_s:.0f} s of the metrics window of {window_s:.0f} s are still to come"
        while self._intervals[0].start_s < time_s - window_s - _CLOCK_S and len(self._intervals) > 1:
            self._before = self._intervals.popleft().sample
        return None

    def mean(self, topology: Topology) -> MetricMeans:
        """Means over the intervals, weighted by their lengths."""
        weights = np.array([i.end_s - i.start_s for i in self._intervals])
        observed = {source: self._mean_observed(source) for source in topology.sources}
        known = {source: rate for source, rate in observed.items() if rate is not None}
        window = _window([i.sample for i in self._intervals], weights, known, topology)
        # Flink reports busy time as it is at a time: what is averaged are its values from the window's start to its end.
        values = [i.sample.busy for i in self._intervals]
        if self._before is not None and len(self._before.busy) == len(values[0]):
            values.insert(0, self._before.busy)
        return replace(window, busy=np.mean(values, axis=0))

    def _filled(self, sample: Sample) -> dict[int, float]:
        earlier = {source for interval in self._intervals for source in interval.observed}
        filled = {source: self._mean_observed(source) for source in earlier - sample.observed.keys()}
        return sample.observed | {source: rate for source, rate in filled.items() if rate is not None}

    def _mean_observed(self, source: int) -> float | None:
        rates = [interval.observed.get(source, math.nan) for interval in self._intervals]
        known = [rate for rate in rates if not math.isnan(rate)]
        return mean_rate(known, self._settings.observed_rate_min_observations)
