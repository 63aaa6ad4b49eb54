"""The autoscaler's evaluation of a metrics window: target rates, true rates, and the utilisation band.

    target rate    sources: records read + growth of the lag, records/s, not below 0; downstream: the sum over the edges
                   of the upstream operator's x records over the edge per record read
    catch-up rate  sources: lag / catch-up duration; downstream likewise
    true rate      records read / busy share; the rate of an operator that read nothing is unlimited. Of sources with
                   a lag of 30 s or more also records read / (1 - backpressured share), which counts where the other
                   exceeds it by more than 15 %
    capacity(u)    round(catch-up rate + target rate x restart time / catch-up duration + target rate / u)

An operator stays as it is while its true rate lies between two capacities: that at the upper end of the band, without the
restart, and that at the lower end, with it. While a backlog is processed the band is from 0 to 1.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from models.scaling.flink.settings import FlinkSettings
from models.scaling.flink.topology import Topology


@dataclass(frozen=True)
class MetricMeans:
    """Metrics over a window; arrays are float64[operators], means over time but for `lag`."""

    records_in: np.ndarray
    """Records/s read."""
    records_out: np.ndarray
    """Records/s sent out, over all edges."""
    busy: np.ndarray
    """Share of time busy."""
    arriving: np.ndarray
    """Sources: records/s read + growth of the lag; 0 elsewhere."""
    lag: np.ndarray
    """Sources: records that wait at the end; 0 elsewhere."""
    edge_ratios: np.ndarray
    """float64[edges]."""
    observed_true_rates: dict[int, float]
    """Sources whose true rate could be observed; infinite where there was nothing to read."""


@dataclass(frozen=True)
class Evaluated:
    """The evaluated rates of the operators; all arrays float64[operators], records/s."""

    target_rate: np.ndarray
    true_rate: np.ndarray
    """Of all tasks together; infinite where nothing was read."""
    scale_up_below: np.ndarray
    """A true rate below it requires more tasks."""
    scale_down_above: np.ndarray
    """A true rate above it allows fewer tasks."""
    wanted_capacity: np.ndarray
    """True rate at which an operator has the target utilisation."""
    processing_backlog: bool


def capacity(
    target_rate: np.ndarray | float,
    catch_up_rate: np.ndarray | float,
    utilization: float,
    restart_s: float,
    catch_up_s: float,
) -> np.ndarray:
    """Required true rate, records/s, rounded: enough to catch up, also after one restart, at the given `utilization`.

    Args:
        target_rate: records/s that come in.
        catch_up_rate: records/s by which the backlog is to shrink.
        utilization: target busy share, clipped to 0-1; at 0 the capacity is unlimited.
        restart_s: downtime to catch up with, seconds.
        catch_up_s: time in which to catch up, seconds; 0 ignores backlog and restart.
    """
    utilization = min(max(utilization, 0.0), 1.0)
    target = np.asarray(target_rate, dtype=float)
    if utilization == 0:
        return np.full_like(target, math.inf)
    restart = target * restart_s / catch_up_s if catch_up_s else 0.0
    wanted: np.ndarray = np.floor(catch_up_rate + restart + target / utilization + 0.5)
    return wanted


def thresholds(
    target_rate: np.ndarray | float,
    catch_up_rate: np.ndarray | float,
    band: tuple[float, float],
    restart_s: float,
    catch_up_s: float,
    processing_backlog: bool,
) -> tuple[np.ndarray, np.ndarray]:
    """True rates below which to scale up, and above which to scale down, records/s."""
    low, high = (0.0, 1.0) if processing_backlog else band
    return (
        capacity(target_rate, catch_up_rate, high, 0.0, catch_up_s),
        capacity(target_rate, catch_up_rate, low, restart_s, catch_up_s),
    )


def observed_true_rate(read: float, lag: float, backpressure: float, lag_threshold_s: float) -> float | None:
    """True rate of a source from what it reads while records wait for it; None while it keeps up.

    Args:
        read: records/s.
        lag: records.
        backpressure: share of time that its tasks wait for those downstream.
        lag_threshold_s: lag over `read` from which a source reads as fast as it can, seconds.
    """
    if read == 0:
        return math.inf
    if lag < lag_threshold_s * read or backpressure >= 1:
        return None
    return read / (1 - backpressure)


def mean_rate(rates: Sequence[float], min_observations: int) -> float | None:
    """Mean of the finite values; None if they are too few, infinite if all are infinite."""
    finite = [rate for rate in rates if math.isfinite(rate)]
    if not finite:
        return math.inf if rates else None
    return sum(finite) / len(finite) if len(finite) >= min_observations else None


def true_rates(window: MetricMeans, switch_threshold: float) -> np.ndarray:
    """Records/s that all tasks of an operator can read, float64[operators]."""
    rates = np.full(len(window.busy), math.inf)
    np.divide(window.records_in, window.busy, out=rates, where=(window.records_in > 0) & (window.busy > 0))
    for source, observed in window.observed_true_rates.items():
        if math.isinf(rates[source]) or rates[source] > observed * (1 + switch_threshold):
            rates[source] = observed
    return rates


def processes_backlog(window: MetricMeans, topology: Topology, lag_threshold_s: float) -> bool:
    """Whether a source is further behind than the threshold at the rate that it reads."""
    sources = topology.sources
    return bool((window.lag[sources] > lag_threshold_s * window.records_in[sources]).any())


def evaluate(window: MetricMeans, topology: Topology, settings: FlinkSettings, restart_s: float) -> Evaluated:
    """All quantities of the module's table. `restart_s` is the expected downtime."""
    catch_up_s = settings.catch_up_duration_s
    target = topology.propagate(np.maximum(window.arriving, 0.0), window.edge_ratios)
    backlog = window.lag / catch_up_s if catch_up_s else np.zeros_like(window.lag)
    catch_up = topology.propagate(backlog, window.edge_ratios)
    processing_backlog = processes_backlog(window, topology, settings.backlog_lag_s)
    up, down = thresholds(target, catch_up, settings.band(), restart_s, catch_up_s, processing_backlog)
    return Evaluated(
        target_rate=target,
        true_rate=true_rates(window, settings.observed_rate_switch),
        scale_up_below=up,
        scale_down_above=down,
        wanted_capacity=capacity(target, catch_up, settings.utilization_target, restart_s, catch_up_s),
        processing_backlog=processing_backlog,
    )
