"""What a decision changes in the running deployment, and a sentence for it.

A decision made earlier may name operators that the rates lack now: they count as unchanged.
"""

from heapq import nlargest
from typing import Final

from models.scaling.policy import Decision
from models.scaling.rates import Rates
from models.wording import tasks as task_count

_NAMED: Final = 4
"""Most changes that a sentence names; further ones are counted."""


def runs_already(decision: Decision, rates: Rates) -> bool:
    """Whether deploying it would change neither the tasks nor the managed memory of any operator."""
    return not _task_changes(decision, rates) and not _memory_changes(decision, rates)


def runs_now(rates: Rates, decision: Decision) -> Decision:
    """The current configuration of the operators in `decision`, which undoes it when deployed."""
    operators = {name: rates.operators[name] for name in decision.parallelism}
    return Decision(
        parallelism={name: metrics.parallelism for name, metrics in operators.items()},
        exact={},
        memory_mb={name: metrics.memory_mb for name, metrics in operators.items() if metrics.memory_mb is not None},
        reasons=dict.fromkeys(operators, "what ran before"),
    )


def changes_in_words(decision: Decision, rates: Rates) -> str:
    """Such as "flatmap from 10 to 14 tasks, count from 5 to 7 tasks", the largest changes of tasks first."""
    changed = _task_changes(decision, rates)
    memory = _memory_changes(decision, rates)
    largest = nlargest(_NAMED, changed, key=lambda change: abs(change[2] - change[1]))
    words = [f"{name} from {before} to {task_count(after)}" for name, before, after in largest]
    words += [f"{name} {_memory(before, after)}" for name, before, after in memory[: _NAMED - len(words)]]
    more = len(changed) + len(memory) - len(words)
    return ", ".join(words) + (f" and {more} more changes" if more else "")


def _task_changes(decision: Decision, rates: Rates) -> list[tuple[str, int, int]]:
    known = [(name, tasks) for name, tasks in decision.parallelism.items() if name in rates.operators]
    before = [(name, rates.operators[name].parallelism, after) for name, after in known]
    return [change for change in before if change[1] != change[2]]


def _memory_changes(decision: Decision, rates: Rates) -> list[tuple[str, float | None, float]]:
    known = [(name, memory) for name, memory in decision.memory_mb.items() if name in rates.operators]
    before = [(name, rates.operators[name].memory_mb, after) for name, after in known]
    return [change for change in before if change[1] != change[2]]


def _memory(before_mb: float | None, after_mb: float) -> str:
    was = "" if before_mb is None else f"from {before_mb:,.0f} "
    return f"{was}to {after_mb:,.0f} MiB a task"
