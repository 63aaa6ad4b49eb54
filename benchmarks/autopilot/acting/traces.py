"""What is fed: the workloads of a run, in their own time."""

from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Final

from benchmarks.autopilot.acting import FACTOR
from pipelines.arena.replays.workloads import Pattern, Workload, pattern, read_workload

MINUTES: Final = 90
"""450 s of real time."""
ADS: Final = Path(__file__).parents[3] / "tests" / "data" / "demeter" / "ads_rates.csv"
ADS_FROM: Final = 30
"""First minute taken: from there the rate rises to 2.5 times, halves, and rises again to the peak of the first day."""

DOUBLING_PARTS: Final = (4, 2, 1, 2, 4, 2, 1, 2, 4)
"""The rate of each ten minutes is the peak divided by these."""


def ads(peak_rate: float) -> Workload:
    """90 minutes of the advertising workload of Demeter (ICPE 2024), with another highest rate."""
    whole = read_workload(ADS, "mean_rate")
    part = whole.model_copy(update={"name": "ads", "rates": whole.rates[ADS_FROM : ADS_FROM + MINUTES]})
    return part.scaled_to(peak_rate)


def cosine(peak_rate: float) -> Workload:
    """A pattern of the evaluation of autoscalers (DEBS 2024, section 5.3): an hour from peak to peak."""
    return pattern(Pattern.COSINE, peak_rate, minutes=MINUTES).scaled_to(peak_rate)


def steps(peak_rate: float) -> Workload:
    """Jumps from half to whole, of the same evaluation; it begins with a tenth of the peak, since a job that has read
    nothing cannot be measured."""
    made = pattern(Pattern.STEPS, peak_rate, minutes=MINUTES)
    return made.model_copy(update={"rates": tuple(max(rate, peak_rate / 10) for rate in made.rates)})


def doubling(peak_rate: float) -> Workload:
    """The controlled experiment of CAPSys (section 6.4.1), twice: every ten minutes the rate doubles, or is halved."""
    rates = tuple(peak_rate / part for part in DOUBLING_PARTS for _ in range(10))
    return Workload(name="doubling", rates=rates)


TRACES: Final[Mapping[str, Callable[[float], Workload]]] = MappingProxyType(
    {"ads": ads, "cosine": cosine, "steps": steps, "doubling": doubling}
)
"""By name: the workload, given its highest rate in records/s of its own time."""


def compressed(workload: Workload, at_real_s: float) -> float | None:
    """Records/s of real time that are due at a time; None after the end."""
    step = int(at_real_s * FACTOR // workload.step_s)
    return workload.rates[step] * FACTOR if step < len(workload.rates) else None
