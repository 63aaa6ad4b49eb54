"""What would lift a bound, and the facts after it."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from models.capacity.diagnosis.bound_by import Cause
from models.capacity.diagnosis.facts import BoundFacts
from models.capacity.diagnosis.finding import Finding
from models.capacity.diagnosis.rates import (
    evened,
    in_memory,
    more_slots,
    of_even_groups,
    task_slots,
    unlimited,
    with_slots,
)
from models.capacity.diagnosis.wording import names

MOST_NAMED: Final = 3
"""Operators whose tasks a remedy lists."""


@dataclass(frozen=True)
class Remedy:
    """What would lift a bound."""

    words: str
    after: BoundFacts | None = None
    """The facts then; None where nothing known says what they are."""
    change: str = ""
    """The fact that changes, in words; where there are no facts, why."""
    waiting_stays: bool = True
    """As `rates.effect` takes it."""


def remedy(facts: BoundFacts, finding: Finding) -> Remedy | None:
    """The remedy for the cause; None where that is unknown."""
    return None if finding.cause == "unknown" else _REMEDIES[finding.cause](facts, finding)


def _vertices(finding: Finding) -> tuple[str, ...]:
    return (*(() if finding.vertex is None else (finding.vertex,)), *finding.also)


def _more_slots(facts: BoundFacts, finding: Finding) -> Remedy:
    who = names(_vertices(finding))
    if any(o.held_busyness is None for o in facts.operators):
        return Remedy(f"more slots for {who}", change="the busyness of an operator is unknown")
    after = with_slots(facts, more_slots(facts))
    grown = [(o, after.operator(o.name)) for o in facts.operators if after.operator(o.name).parallelism > o.parallelism]
    if not grown:
        return Remedy(f"more slots for {who}, which may have no more tasks", change="no operator may have more tasks")
    grown.sort(key=lambda pair: pair[0].parallelism - pair[1].parallelism)
    listed = ", ".join(
        f"{before.name} {before.parallelism} -> {then.parallelism}" for before, then in grown[:MOST_NAMED]
    )
    change = f"{task_slots(facts)} -> {task_slots(after)} tasks ({listed}{', ...' if len(grown) > MOST_NAMED else ''})"
    return Remedy(f"more slots for {who}, and for those as tight", after, change)


def _another_key(facts: BoundFacts, finding: Finding) -> Remedy:
    who = _vertices(finding)
    keyed = names(who)
    return Remedy(
        f"two-phase (local-global) aggregation where {keyed} aggregate{'s' * (len(who) == 1)}, else another key: one that also "
        "holds what tells its records apart",
        evened(facts, who),
        f"even shares for the tasks of {keyed}",
        waiting_stays=False,
    )


def _more_key_groups(facts: BoundFacts, finding: Finding) -> Remedy:
    who = names(_vertices(finding))
    return Remedy(
        f"a maximum parallelism (key groups) of {who} that is many times its tasks, or a number of tasks that divides it",
        of_even_groups(facts, _vertices(finding)),
        f"as many key groups in every task of {who}",
    )


def _more_memory(facts: BoundFacts, finding: Finding) -> Remedy:
    who = names(_vertices(finding))
    return Remedy(
        f"more managed memory for the tasks of {who}",
        in_memory(facts, _vertices(finding)),
        f"all state of {who} in memory",
    )


def _faster_network(facts: BoundFacts, finding: Finding) -> Remedy:
    halved = facts.model_copy(update={"network_use": None if facts.network_use is None else facts.network_use / 2})
    return Remedy(
        "TaskManagers with more bandwidth, or more of them with fewer slots each", halved, "twice the bandwidth"
    )


def _more_partitions(facts: BoundFacts, finding: Finding) -> Remedy:
    assert finding.vertex is not None
    before = facts.operator(finding.vertex)
    limited = before.most_tasks is not None and before.parallelism >= before.most_tasks
    words = f"more partitions for {before.name}" if limited else f"more tasks of {before.name}"
    if not before.is_source:
        words = f"a higher max_parallelism of {before.name} (more partitions or key groups)"
    if any(o.held_busyness is None for o in facts.operators):
        return Remedy(words, change="the busyness of an operator is unknown")
    after = unlimited(facts, before.name)
    tasks = after.operator(before.name).parallelism
    return Remedy(words, after, f"{before.parallelism} -> {tasks} tasks of {before.name}")


def _stagger(facts: BoundFacts, finding: Finding) -> Remedy:
    return Remedy(
        "windows that fire at different times (a random WindowStagger), or larger buffers before them",
        change="the facts do not say how much of the waiting would remain",
    )


_REMEDIES: Final[dict[Cause, Callable[[BoundFacts, Finding], Remedy]]] = {
    "CPU": _more_slots,
    "hot key": _another_key,
    "key groups": _more_key_groups,
    "state reads": _more_memory,
    "network": _faster_network,
    "max parallelism": _more_partitions,
    "source partitions": _more_partitions,
    "waiting": _stagger,
}
