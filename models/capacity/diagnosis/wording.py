"""A finding in plain words, with the figures that it rests on."""

from collections.abc import Sequence
from typing import Final

from models.capacity.diagnosis.facts import BoundFacts, OperatorFacts
from models.capacity.diagnosis.finding import FULL, UNEVEN, Finding
from models.capacity.diagnosis.rates import of_groups
from models.wording import amount, tasks

_ROUNDING: Final = 1e-6


def sentence(facts: BoundFacts, finding: Finding) -> str:
    """What binds, and why that follows from the facts."""
    if finding.cause == "unknown":
        return _unknown(facts)
    if finding.cause == "network":
        who = "" if finding.vertex is None else f"; {finding.vertex} sends most of it"
        return f"{_at(facts)}, the fullest worker uses {facts.network_use or 0:.0%} of its network{who}"
    assert finding.vertex is not None
    said = {
        "CPU": _cpu,
        "hot key": _hot_key,
        "key groups": _key_groups,
        "state reads": _state_reads,
        "max parallelism": _max_parallelism,
        "source partitions": _sources,
        "waiting": _waiting,
    }[finding.cause](facts, facts.operator(finding.vertex))
    others = f"; the same holds for {names(finding.also)}" if finding.also else ""
    return f"{_at(facts)}, {said}{others}"


def names(of: Sequence[str]) -> str:
    """Names in a sentence."""
    return " and ".join(filter(None, (", ".join(of[:-1]), of[-1])))


def _at(facts: BoundFacts) -> str:
    return f"at {'' if facts.measured else 'the predicted '}{amount(facts.rate)} records/s"


def _share(value: float | None) -> str:
    return "an unknown share" if value is None else f"{value:.0%}"


def _busy(facts: BoundFacts, operator: OperatorFacts) -> str:
    """How busy its tasks are; for a rate that they cannot take, the rate that they can."""
    held, count = operator.held_busyness or 0.0, tasks(operator.parallelism)
    be = "is" if operator.parallelism == 1 else "are"
    mean = operator.busyness
    if facts.measured:  # of records that fill buffers meanwhile, the facts count the work as well
        mean, held = None if mean is None else min(mean, 1.0), min(held, 1.0)
    busy = f"the {count} of {operator.name} {be} busy for {_share(mean)} of the time"
    if facts.measured:
        return f"{busy}, the fullest for {_share(held)}" if operator.parallelism > 1 else busy
    fewer = ", by these facts and fewer than the capacity model predicts," if held > 1 + _ROUNDING else ""
    return f"{busy} in the mean; {amount(facts.rate / max(held, 1e-9))} records/s{fewer} fill the fullest"


def _cpu(facts: BoundFacts, operator: OperatorFacts) -> str:
    evenly = ", nearly evenly" if operator.parallelism > 1 and (operator.unevenness or 1.0) < UNEVEN else ""
    full = facts.cores_use
    cores = f"; the fullest worker's tasks use {full:.0%} of its cores" if full is not None and full >= FULL else ""
    return f"{_busy(facts, operator)}{evenly}{cores}"


def _hot_key(facts: BoundFacts, operator: OperatorFacts) -> str:
    known = operator.fullest_share
    share = (operator.unevenness or 1.0) / operator.parallelism
    range_ = "" if known is None or known.low == known.high else f" (over time {known.low:.0%} to {known.high:.0%})"
    return (
        f"{_busy(facts, operator)}, since one task at a time gets {min(share, 1.0):.0%} of the records{range_} and an even "
        f"share is {1 / operator.parallelism:.0%}"
    )


def _key_groups(facts: BoundFacts, operator: OperatorFacts) -> str:
    groups, count = operator.key_groups or 0, operator.parallelism
    return (
        f"{_busy(facts, operator)}, since {groups} key groups do not divide by {count} tasks, so that some have "
        f"{-(-groups // count)} and others {groups // count}, {of_groups(operator) - 1:.0%} more than the mean"
    )


def _state_reads(facts: BoundFacts, operator: OperatorFacts) -> str:
    return (
        f"{_busy(facts, operator)}, and {_share(operator.state_share)} of that they wait for state: "
        f"{1 - (operator.cache_hit_rate or 0.0):.1%} of the reads are not in memory"
    )


def _max_parallelism(facts: BoundFacts, operator: OperatorFacts) -> str:
    return f"{_busy(facts, operator)}, and it may have no more than {tasks(operator.most_tasks or 0)}"


def _sources(facts: BoundFacts, operator: OperatorFacts) -> str:
    limit = operator.most_tasks
    more = "" if limit is None or operator.parallelism < limit else f", and it may have no more than {tasks(limit)}"
    return f"{_busy(facts, operator)}{more}"


def _waiting(facts: BoundFacts, operator: OperatorFacts) -> str:
    held_back = max(o.backpressure or 0.0 for o in facts.operators)
    return (
        f"no task is busy all the time (of the windows {operator.name} the most, for {_share(operator.held_busyness)}), and "
        f"yet operators wait for others after them for {held_back:.0%} of the time: windows fire together, and tasks wait in "
        "turns"
    )


def _unknown(facts: BoundFacts) -> str:
    known = [o for o in facts.operators if o.held_busyness is not None]
    if not known:
        return "nothing is known of how busy the operators' tasks are"
    busiest = max(known, key=lambda o: o.held_busyness or 0.0)
    return (
        f"{_at(facts)}, no task is busy all the time ({busiest.name} the most, for {_share(busiest.held_busyness)}), "
        "and neither keys, windows nor a worker's network are seen to explain it"
    )
