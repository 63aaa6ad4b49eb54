"""Which vertex binds, and by what cause.

A vertex binds where its fullest task is busy all the time while those before it wait for it. Nothing is busy all the time
where windows fire together or tasks wait for one another: then the tasks of a window wait in turns.
"""

import math
from dataclasses import dataclass
from typing import Final

from models.capacity.diagnosis.bound_by import Cause
from models.capacity.diagnosis.facts import HELD_BACK, BoundFacts, OperatorFacts
from models.capacity.diagnosis.rates import of_groups

BUSY: Final = 0.75
"""Busyness of the fullest task from which it binds: at an MST it waits at times, since records come in bursts."""
BUSY_IN_TURNS: Final = 0.6
"""The same of the busiest task in each interval where a hot key moves on within intervals, which hides a part of it, and
the operators before it are held back."""
UNEVEN: Final = 1.25
"""Fullest task over the mean from which evening the load is worth more than slots of the same number."""
WAITING: Final = 0.25
"""Share of its busy time that an operator waits for state, from which more memory is worth it."""
ALL_CACHED: Final = 0.999
"""Cache hit rate at which more memory brings nothing."""
FULL: Final = 0.9
"""Use of a worker's cores or network from which that binds."""
ALIKE: Final = 0.75
"""Share of the tightest operator's busyness from which another binds at about the same rate."""


@dataclass(frozen=True)
class Finding:
    """A vertex and the cause for which it binds; no vertex where nothing points to one."""

    cause: Cause
    vertex: str | None = None
    """Its name. Of the operator that sends most, there may be no facts."""
    also: tuple[str, ...] = ()


def find(facts: BoundFacts) -> Finding:
    """The vertex that binds and its cause."""
    known = [o for o in facts.operators if o.held_busyness is not None]
    binding = [o for o in known if _binds(facts, o)]
    fuller = max(_held(binding), facts.cores_use or 0.0)
    if facts.network_use is not None and facts.network_use >= FULL and facts.network_use > fuller:
        return Finding("network", facts.network_vertex)
    if binding:
        tightest = max(binding, key=_tightness)
        cause = cause_of(tightest)
        return Finding(cause, tightest.name, _alike(binding, tightest, cause))
    if facts.cores_use is not None and facts.cores_use >= FULL and known:
        return Finding("CPU", max(known, key=_tightness).name)
    waiting = _waiting(facts, known)
    return Finding("unknown") if waiting is None else Finding("waiting", waiting.name)


def _held(operators: list[OperatorFacts]) -> float:
    return max((o.held_busyness or 0.0 for o in operators), default=0.0)


def _binds(facts: BoundFacts, operator: OperatorFacts) -> bool:
    held = operator.held_busyness or 0.0
    return held >= BUSY or (
        held >= BUSY_IN_TURNS and _holds_back(facts, operator) and (operator.unevenness or 0) >= UNEVEN
    )


def _holds_back(facts: BoundFacts, operator: OperatorFacts) -> bool:
    """Whether those before it wait, and it does not."""
    before = facts.upstream_backpressure(operator)
    return operator.keyed and before is not None and before > 2 * HELD_BACK + (operator.backpressure or 0.0)


def _tightness(operator: OperatorFacts) -> float:
    """Busyness of the fullest task, less what it waits for those after it."""
    return (operator.held_busyness or 0.0) * (1 - (operator.backpressure or 0.0))


def _alike(binding: list[OperatorFacts], tightest: OperatorFacts, cause: Cause) -> tuple[str, ...]:
    return tuple(
        o.name
        for o in binding
        if o.name != tightest.name and _tightness(o) >= ALIKE * _tightness(tightest) and cause_of(o) == cause
    )


def cause_of(operator: OperatorFacts) -> Cause:
    """Why an operator that binds does: what would lift it the most."""
    uneven = operator.unevenness or 1.0
    state = 1 / max(1 - _state_share(operator), 1e-9)
    if operator.is_source:
        return "source partitions"
    if operator.parallelism > 1 and operator.keyed and uneven >= UNEVEN and uneven >= state:
        return "key groups" if math.log(of_groups(operator)) >= math.log(uneven) / 2 else "hot key"
    if state >= 1 / (1 - WAITING):
        return "state reads"
    at_limit = operator.most_tasks is not None and operator.parallelism >= operator.most_tasks
    return "max parallelism" if at_limit else "CPU"


def _state_share(operator: OperatorFacts) -> float:
    """Share of its busy time that it waits for state that is not in memory."""
    hits = operator.cache_hit_rate
    return 0.0 if hits is None or hits >= ALL_CACHED else operator.state_share or 0.0


def _waiting(facts: BoundFacts, known: list[OperatorFacts]) -> OperatorFacts | None:
    """The window whose tasks are busiest, where sources are held back although nothing is busy; None without one."""
    held_back = any((o.backpressure or 0.0) > HELD_BACK for o in facts.operators)
    windows = [o for o in known if o.windowed]
    return max(windows, key=_tightness) if held_back and windows else None
