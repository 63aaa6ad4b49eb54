"""The throughput of the sources against their targets."""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from models.errors import InvalidInput
from models.scaling.rates import Rates


@dataclass(frozen=True)
class Throughput:
    """Of all sources together, records/s."""

    target: float
    achieved: float
    ratio: float
    """Largest target over achieved rate of a source; sources with a rate or target of 0 do not count."""


def throughput(rates: Rates) -> Throughput:
    """The rates that the sources read in the interval, and their targets.

    Raises:
        InvalidInput: a source reports no observed rate.
    """
    achieved = {name: _achieved(rates, name) for name in rates.sources}
    ratios = [rates.source_rates[name] / rate for name, rate in achieved.items() if rate > 0]
    return Throughput(sum(rates.source_rates.values()), sum(achieved.values()), max(ratios, default=1.0))


def median_throughput(seen: Sequence[Throughput]) -> Throughput:
    """Medians over the intervals, so that one with cold tasks or a firing window does not count."""
    return Throughput(
        median(one.target for one in seen), median(one.achieved for one in seen), median(one.ratio for one in seen)
    )


def _achieved(rates: Rates, source: str) -> float:
    """Records/s that a source reads: by what it emits or, where its selectivity is unknown, as it counts them."""
    metrics, selectivity = rates.operators.get(source), rates.source_selectivity.get(source)
    if metrics is not None and metrics.observed_input_rate is not None and not selectivity:
        return metrics.observed_input_rate
    if metrics is None or metrics.observed_output_rate is None:
        raise InvalidInput(
            f"source {source!r} has no observed_output_rate, which is compared with its target of "
            f"{rates.source_rates[source]:g} records/s; measure it"
        )
    return metrics.observed_output_rate / (selectivity or 1.0)
