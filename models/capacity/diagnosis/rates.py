"""The rate at which a job saturates, from its facts, and how the facts change by a remedy.

At the rate lambda of the facts (notation in `facts.py`), the first task or worker is full at

    lambda / max(m_i of all operators, use of the fullest worker's cores, use of its network)           (1)

With p' tasks instead of p_i, and everything else as it is, the fullest task's busyness becomes

    w_i (h_i + (1 - h_i) / p')                                                                          (2)

since w_i is the work of all tasks together, of which the share h_i stays with one.
"""

import heapq
import math
from collections.abc import Callable, Collection, Sequence
from typing import Final

from models.capacity.diagnosis.bound_by import RemedyEffect
from models.capacity.diagnosis.facts import BoundFacts, OperatorFacts

MORE_SLOTS: Final = 0.25
"""Share of the task slots that the remedy "more slots" adds."""
_MEASURES: Final = ("busyness", "fullest_busyness", "peak_busyness")

Predictor = Callable[[BoundFacts], float | None]
"""Records/s at which a job with these facts saturates; None where they do not say."""


def saturating_rate(facts: BoundFacts) -> float | None:
    """Eq. 1; None where the busyness of an operator is unknown, since that one may bind."""
    held = [o.held_busyness for o in facts.operators]
    uses = [*held, *(use for use in (facts.cores_use, facts.network_use) if use is not None)]
    if any(one is None for one in held):
        return None
    most = max(one for one in uses if one is not None)
    return facts.rate / most if most > 0 else None


def effect(
    before: BoundFacts, after: BoundFacts, change: str, predict: Predictor = saturating_rate, *, waiting_stays: bool
) -> RemedyEffect | None:
    """What changing the facts brings; None where the predictor has no answer for one of them.

    Args:
        change: the fact that changes, in words.
        waiting_stays: whether the share of time in which the fullest task waits at the rate of the facts is waited after
            the change, too. It is not where a hot key is why the others wait.
    """
    now, then = predict(before), predict(after)
    if now is None or then is None:
        return None
    # A plan's facts belong to a predicted rate, which may be more than they can take.
    rate_now = before.rate if before.measured else min(before.rate, now)
    reached = rate_now * then / now if waiting_stays else then
    return RemedyEffect(
        change=change,
        rate_now=rate_now,
        rate_then=max(reached, rate_now),
        then_bound_by=_tightest(after),
    )


def _tightest(facts: BoundFacts) -> str | None:
    """The operator that saturates first; None where a worker does before."""
    first = max(facts.operators, key=lambda o: o.held_busyness or 0.0)
    return first.name if (first.held_busyness or 0.0) >= max(facts.cores_use or 0.0, facts.network_use or 0.0) else None


def evened(facts: BoundFacts, names: Collection[str]) -> BoundFacts:
    """The records of these operators spread evenly over their tasks."""
    even = {name: facts.operator(name) for name in names}
    return facts.with_operators(
        {
            name: o.model_copy(
                update={"fullest_busyness": o.busyness, "peak_busyness": o.busyness, "fullest_share": None}
            )
            for name, o in even.items()
        }
    )


def of_even_groups(facts: BoundFacts, names: Collection[str]) -> BoundFacts:
    """As many key groups in every task of these operators; what is uneven beside that stays."""
    grouped = {name: facts.operator(name) for name in names}
    return facts.with_operators(
        {
            name: o.model_copy(
                update={
                    measure: max(value / of_groups(o), o.busyness or 0.0)
                    for measure in ("fullest_busyness", "peak_busyness")
                    if (value := getattr(o, measure)) is not None
                }
            )
            for name, o in grouped.items()
        }
    )


def of_groups(operator: OperatorFacts) -> float:
    """Fullest task over the mean by its number of key groups alone; 1 where it has no keys."""
    groups, tasks = operator.key_groups, operator.parallelism
    return 1.0 if groups is None else math.ceil(groups / tasks) * tasks / groups


def in_memory(facts: BoundFacts, names: Collection[str]) -> BoundFacts:
    """No waiting for the state of these operators."""
    return facts.with_operators(
        {n: _scaled(facts.operator(n), 1 - (facts.operator(n).state_share or 0.0)) for n in names}
    )


def _scaled(operator: OperatorFacts, factor: float) -> OperatorFacts:
    known = {name: getattr(operator, name) for name in _MEASURES}
    return operator.model_copy(update={name: v * factor for name, v in known.items() if v is not None})


def with_tasks(operator: OperatorFacts, tasks: int) -> OperatorFacts:
    """The operator with another number of tasks (Eq. 2), whatever its limit."""
    if operator.busyness is None or operator.work is None:
        return operator.model_copy(update={"parallelism": tasks})
    hot = operator.hot_share
    fullest = operator.work * (hot + (1 - hot) / tasks)
    return operator.model_copy(
        update={
            "parallelism": tasks,
            "busyness": operator.busyness * operator.parallelism / tasks,
            "fullest_busyness": fullest,
            "peak_busyness": fullest,
            "fullest_share": None,
        }
    )


def task_slots(facts: BoundFacts) -> int:
    """Tasks of all operators but the sources or, where there are no others, of the sources."""
    return sum(o.parallelism for o in _counted(facts))


def _counted(facts: BoundFacts) -> Sequence[OperatorFacts]:
    """The operators that slots are counted for: Flink may chain a whole job to its source."""
    return [o for o in facts.operators if not o.is_source] or facts.operators


def with_slots(facts: BoundFacts, slots: int) -> BoundFacts:
    """So many further tasks, each for the operator that is tightest then and may have another, on workers like the others."""
    grown = {o.name: o for o in facts.operators}
    queue = [(-(o.held_busyness or 0.0), o.name) for o in _counted(facts) if _may_grow(o)]
    heapq.heapify(queue)
    before = task_slots(facts)
    for _ in range(slots):
        if not queue:
            break
        name = heapq.heappop(queue)[1]
        grown[name] = with_tasks(grown[name], grown[name].parallelism + 1)
        if _may_grow(grown[name]):
            heapq.heappush(queue, (-(grown[name].held_busyness or 0.0), name))
    after = facts.with_operators(grown)
    fewer = before / task_slots(after)
    uses = {name: getattr(facts, name) for name in ("cores_use", "network_use")}
    return after.model_copy(update={name: use * fewer for name, use in uses.items() if use is not None})


def _may_grow(operator: OperatorFacts) -> bool:
    return operator.most_tasks is None or operator.parallelism < operator.most_tasks


def more_slots(facts: BoundFacts) -> int:
    """How many task slots the remedy "more slots" adds."""
    return max(1, math.ceil(MORE_SLOTS * task_slots(facts)))


def unlimited(facts: BoundFacts, name: str) -> BoundFacts:
    """As many tasks of one operator as it takes for another to saturate first, however many it may have; twice at most."""
    operator = facts.operator(name)
    others = max((o.held_busyness or 0.0 for o in facts.operators if o.name != name), default=0.0)
    tasks = operator.parallelism
    while tasks < 2 * operator.parallelism and (with_tasks(operator, tasks).held_busyness or 0.0) > others:
        tasks += 1
    return facts.with_operators({name: with_tasks(operator, tasks)})
