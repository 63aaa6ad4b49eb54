"""The parts of a decision's record, from what was seen and done."""

from collections.abc import Iterable, Mapping
from dataclasses import asdict
from typing import Final

from models.scaling.control.granting import TaskBounds
from models.scaling.control.limits import ControlLimits
from models.scaling.policy import ForecastingPolicy, Policy, Recommendation
from models.scaling.rates import Rates
from pipelines.control.actions.carrying import Carried
from pipelines.control.actions.intents import Intent
from pipelines.control.record import AutopilotDecision, PolicyAdvice, PolicyOutlook, RescaleTaken, SeenJob, SeenVertex
from pipelines.control.sensing import Sight, state_mb

_SHOWN: Final = 4


def seen_of(
    sight: Sight,
    rates: Rates | None,
    seconds: float | None,
    age_s: float | None,
    bounds: TaskBounds | None,
    limits: ControlLimits,
) -> SeenJob:
    """What was seen; of rates that are not known, the tasks alone."""
    tasks = sight.tasks
    slots = bounds.slots_of(tasks) if bounds is not None and tasks else None
    read = (
        None
        if rates is None
        else _sum(rates.operators[n].observed_input_rate for n in rates.sources if n in rates.operators)
    )
    lag = None if rates is None else _sum(rates.operators[n].lag_records for n in rates.sources if n in rates.operators)
    return SeenJob(
        arriving_rate=None if rates is None else sum(rates.source_rates.values()),
        read_rate=read,
        lag_records=lag,
        lag_s=None if lag is None or not read else lag / read,
        tasks=sum(tasks.values()) or None,
        slots=slots,
        slots_there=(sight.slowly.slots or None) if sight.slowly is not None else None,
        price_per_hour=price(slots, limits),
        state_mb=state_mb(sight),
        staleness_s=age_s,
        interval_s=seconds,
        vertices={sight.names[v.id]: _vertex(v.id, v.name, len(v.tasks), sight, rates) for v in sight.vertices},
        faults=() if sight.fault is None else (sight.fault,),
    )


def _vertex(id_: str, flink_name: str, tasks: int, sight: Sight, rates: Rates | None) -> SeenVertex:
    metrics = None if rates is None else rates.operators.get(sight.names[id_])
    return SeenVertex(
        id=id_,
        flink_name=flink_name,
        tasks=tasks,
        busyness=None if metrics is None else metrics.busyness,
        max_busyness=None if metrics is None else metrics.max_busyness,
        backpressure=None if metrics is None else metrics.backpressure,
        observed_rate=None if metrics is None else metrics.observed_input_rate,
        true_rate=None if metrics is None else metrics.true_processing_rate,
    )


def _sum(values: Iterable[float | None]) -> float | None:
    """None where one is unknown."""
    known = list(values)
    return None if not known or None in known else sum(value for value in known if value is not None)


def price(slots: int | None, limits: ControlLimits) -> float | None:
    """Of the slots, USD per hour."""
    return None if slots is None or limits.price_per_slot_hour is None else slots * limits.price_per_slot_hour


def advice_of(advice: Recommendation, running: Mapping[str, int]) -> PolicyAdvice:
    deploy = advice.deploy
    if deploy is None:
        return PolicyAdvice(reason=advice.reason, parallelism=None)
    changed = [name for name, tasks in deploy.parallelism.items() if running.get(name) != tasks]
    return PolicyAdvice(
        reason=advice.reason,
        parallelism=deploy.parallelism,
        memory_mb=deploy.memory_mb,
        reasons={name: deploy.reasons[name] for name in changed if name in deploy.reasons},
    )


def outlook_of(policy: Policy) -> PolicyOutlook | None:
    """What a policy expects; None if it forecasts nothing."""
    found = policy.outlook if isinstance(policy, ForecastingPolicy) else None
    return None if found is None else PolicyOutlook.model_validate(asdict(found))


def rescale_of(
    intent: Intent, carried: Carried | None, bounds: TaskBounds | None, limits: ControlLimits, *, resumed: bool = False
) -> RescaleTaken:
    """A rescale by its intent and how it ended; None: in a dry run."""
    after = {intent.names[id_]: tasks for id_, tasks in intent.wanted.items()}
    slots = None if bounds is None else bounds.slots_of(after)
    return RescaleTaken(
        intent=None if carried is None else intent.number,
        method=intent.method,
        before={intent.names[id_]: tasks for id_, tasks in intent.before.items()},
        after=after,
        cut=intent.cut,
        slots_after=slots,
        price_after=price(slots, limits),
        seconds=None if carried is None else carried.seconds,
        downtime_s=None if carried is None else carried.downtime_s,
        flinks_rescale_s=None if carried is None else carried.flinks_rescale_s,
        placement=None if intent.placement is None else intent.placement.tasks,
        as_placed=None if carried is None else carried.as_placed,
        not_placed=intent.not_placed,
        why=None if carried is None else carried.why,
        resumed=resumed,
    )


def line(decision: AutopilotDecision) -> str:
    """A decision in one line for people."""
    seen, taken = decision.seen, decision.rescale
    rate = "?" if seen.arriving_rate is None else f"{seen.arriving_rate:,.0f}/s"
    lag = "?" if seen.lag_records is None else f"{seen.lag_records:,.0f}"
    what = decision.done if decision.held is None else f"{decision.done} ({decision.held})"
    changes = ""
    if taken is not None:
        changed = [(n, taken.before[n], count) for n, count in taken.after.items() if taken.before.get(n) != count]
        changes = " " + ", ".join(f"{n} {old} -> {new}" for n, old, new in changed[:_SHOWN])
        changes += ", ..." if len(changed) > _SHOWN else ""
        changes += "" if taken.seconds is None else f" in {taken.seconds:.1f} s"
    head = f"{decision.decided_at:%H:%M:%S}  {rate} in, lag {lag}, {seen.tasks or '?'} tasks  {what}{changes}"
    return f"{head}: {decision.reason}"
