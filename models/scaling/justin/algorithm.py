"""Justin: memory before tasks where state access says so (Justin section 4, Algorithm 1).

Notation, of operator o_i in configuration C^t, the one that is decided on:

    o_i.p^t      its tasks
    o_i.m^t      memory level of its tasks: managed memory is 2^m times the least; none ("bottom") where no state is kept
    o_i.v^t      whether C^t raised its memory level
    o_i.theta^t  cache hit rate, and o_i.tau^t latency of a state access, as measured before C^t is decided on

Rulings, where the published pseudo-code leaves room:

- `(m + 1) < maxLevel` with maxLevel = 3 leaves the levels 0, 1 and 2, which are the three that section 5 uses.
- Line 6 tests `p^t != p^(t-1)` and is taken literally: under memory pressure, fewer tasks than now also lead to more
  memory. Its comment, "capacity insufficient?", suggests that only more tasks should.
- Line 12, "Roll-back scale in", lowers the memory level; the text calls it "cancel the previous scale-up". DS2's tasks
  are deployed. After that the operator counts as not scaled up, so a later decision may try again.
- Where no line sets m^t it is m^(t-1), and where no line sets v^t it is false.
- An operator is stateless if no metric of a state backend is reported: cache hit rate, state latency, size of state. If
  one of the first two is missing, the other one decides. The level is 0 if the managed memory is unknown.
"""

import math
from collections.abc import Mapping
from typing import NamedTuple

from pydantic import Field

from models.metrics import SAMPLE_INTERVAL_S
from models.resources.memory import MANAGED_MB
from models.scaling.ds2.model import ds2
from models.scaling.policy import Decision
from models.scaling.rates import OperatorMetrics, Rates
from models.schema import Format, NonNegative, Positive, PositiveInt, Ratio
from models.wording import tasks as task_count


class JustinSettings(Format):
    """Parameters of Algorithm 1 and of its trigger, as in section 5."""

    min_cache_hit_rate: Ratio = Field(0.8, description="Delta_theta: a lower cache hit rate asks for memory.")
    max_state_latency_s: Positive = Field(0.001, description="Delta_tau: a slower state access asks for memory, s.")
    max_level: PositiveInt = Field(3, description="maxLevel: memory levels, 0 to one below.")
    managed_memory_mb: Positive = Field(MANAGED_MB, description="Managed memory of a task at level 0, MiB.")
    min_improvement: NonNegative = Field(
        0.0, description="Relative change of hit rate or latency that more memory must bring (footnote to line 8)."
    )
    min_busyness: Ratio = Field(
        0.2, description="An operator with several tasks and a lower busyness triggers a decision."
    )
    max_busyness: Ratio = Field(
        0.8, description="An operator with a higher busyness whose upstream is backpressured triggers a decision."
    )
    min_backpressure: Ratio = Field(0.05, description="Backpressure from which an operator counts as backpressured.")
    decision_window_s: float = Field(
        120.0, gt=0, multiple_of=SAMPLE_INTERVAL_S, description="Time that metrics are averaged over, s."
    )
    stabilization_s: float = Field(60.0, ge=0, description="Time after a start whose metrics are ignored, s.")
    over_provisioning_factor: NonNegative = Field(0.0, description="Share of tasks added to those DS2 asks for.")


class ScaledUp(NamedTuple):
    """An operator whose memory the last reconfiguration raised (v^(t-1)), and its metrics before that.

    A tuple, since there is one for each of up to 1,000 operators.
    """

    level: int
    """Its memory level since then."""
    cache_hit_rate: float | None
    state_latency_s: float | None


def justin(
    rates: Rates, raised: Mapping[str, ScaledUp], settings: JustinSettings
) -> tuple[Decision, dict[str, ScaledUp]]:
    """Algorithm 1: a new configuration, and the operators whose memory it raises.

    Args:
        rates: measured while C^(t-1) ran.
        raised: operators whose memory C^(t-1) raised; empty where there is no history.
        settings: thresholds and levels.

    Raises:
        InvalidInput: as `ds2`.
    """
    wanted = ds2(rates, settings.over_provisioning_factor)  # line 1
    parallelism = dict(wanted.parallelism)
    memory: dict[str, float] = {}
    reasons = dict(wanted.reasons)
    now_raised: dict[str, ScaledUp] = {}
    for name in wanted.parallelism:  # line 2
        metrics = rates.operators[name]
        if _is_stateless(metrics):  # lines 3, 4
            memory[name] = 0.0
            reasons[name] += "; it keeps no state, so it gets no managed memory"
            continue
        before = raised.get(name)
        level, change = _level(metrics, before, settings), 0
        if wanted.parallelism[name] != metrics.parallelism:  # line 6
            change, why = _memory_change(metrics, level, before, settings)  # lines 7 to 16
            reasons[name] += f"; {why}"
        if change > 0:
            parallelism[name] = metrics.parallelism
            now_raised[name] = ScaledUp(level + change, metrics.cache_hit_rate, metrics.state_latency_s)
        memory[name] = _memory(metrics, level, change, settings)
    exact = {name: tasks for name, tasks in wanted.exact.items() if name not in now_raised}
    return Decision(parallelism=parallelism, exact=exact, memory_mb=memory, reasons=reasons), now_raised


def _is_stateless(metrics: OperatorMetrics) -> bool:
    return metrics.cache_hit_rate is None and metrics.state_latency_s is None and metrics.state_mb is None


def _memory_change(
    metrics: OperatorMetrics, level: int, before: ScaledUp | None, settings: JustinSettings
) -> tuple[int, str]:
    """The change of the memory level by lines 7 to 16 for an operator that DS2 scales, and why."""
    access = _access_in_words(metrics)
    kept = f"so it gets more memory and keeps its {task_count(metrics.parallelism)}"
    can_scale_up = level + 1 < settings.max_level
    if before is not None:  # line 7
        if not _improved(metrics, before, settings):  # line 8
            return -1, f"more memory had no effect ({access}), so it is withdrawn"  # line 12
        if can_scale_up:  # lines 9, 10
            return 1, f"more memory helped ({access}), {kept}"
        return 0, f"more memory helped ({access}), but it is at the highest level"
    if not _under_pressure(metrics, settings):
        return 0, f"its state is accessed fast enough ({access})"
    if can_scale_up:  # lines 14 to 16
        return 1, f"its state is accessed slowly ({access}), {kept}"
    return 0, f"its state is accessed slowly ({access}), but its memory is at the highest level"


def _improved(metrics: OperatorMetrics, before: ScaledUp, settings: JustinSettings) -> bool:
    """theta^t > theta^(t-1) or tau^t < tau^(t-1)."""
    least = settings.min_improvement
    hits, hits_before = metrics.cache_hit_rate, before.cache_hit_rate
    latency, latency_before = metrics.state_latency_s, before.state_latency_s
    more_hits = hits is not None and hits_before is not None and hits > hits_before * (1 + least)
    faster = latency is not None and latency_before is not None and latency < latency_before * (1 - least)
    return more_hits or faster


def _under_pressure(metrics: OperatorMetrics, settings: JustinSettings) -> bool:
    """theta^t < Delta_theta or tau^t > Delta_tau."""
    hits, latency = metrics.cache_hit_rate, metrics.state_latency_s
    return (hits is not None and hits < settings.min_cache_hit_rate) or (
        latency is not None and latency > settings.max_state_latency_s
    )


def _level(metrics: OperatorMetrics, before: ScaledUp | None, settings: JustinSettings) -> int:
    """m^(t-1): the level whose memory is nearest to what its tasks have."""
    if metrics.memory_mb is None:
        return before.level if before is not None else 0
    times = metrics.memory_mb / settings.managed_memory_mb
    return round(math.log2(times)) if times > 1 else 0


def _memory(metrics: OperatorMetrics, level: int, change: int, settings: JustinSettings) -> float:
    """Managed memory of one task, MiB; unchanged if its level stays."""
    if change == 0 and metrics.memory_mb:
        return metrics.memory_mb
    return float(settings.managed_memory_mb * 2 ** max(0, level + change))


def _access_in_words(metrics: OperatorMetrics) -> str:
    hits, latency = metrics.cache_hit_rate, metrics.state_latency_s
    if latency is None:
        return "no access measured" if hits is None else f"{hits:.0%} of reads from memory"
    in_ms = f"{1e3 * latency:.3g} ms an access"
    return in_ms if hits is None else f"{hits:.0%} of reads from memory, {in_ms}"
