"""BIDS2: the parallelism with the highest source rate for a bounded number of task slots (StreamBed section 5).

Notation (StreamBed Table 1):

    P            task slots to give out
    o_i          true processing rate of one task of operator i, records/s
    r_i          records into operator i per record of the sources
    pi_i         tasks of operator i, 1 <= pi_i <= c_i (c_i: its max_parallelism, or infinity)
    lambda       source rate, records/s

    max lambda   subject to   lambda * r_i <= pi_i * o_i,   sum_i pi_i = P                       (Eq. 1-4)

So the source rate of a given parallelism is min_i s_i(pi_i) with s_i(k) = k * o_i / r_i, and infinity where r_i = 0.

The method gives one task to each operator, then every further slot to the operator whose s_i is the lowest and that
may still grow (ties: fewer tasks, then the given order).

Why it is exact. Let L be the optimum and m_i the fewest tasks with s_i(m_i) >= L; every optimal solution has
pi_i >= m_i, so sum_i m_i <= P and m_i <= c_i. Suppose the method ends with min_i s_i < L. That minimum never falls as
slots are given out, so every slot went either to an operator i with s_i < L, which then had fewer than m_i tasks and
now has at most m_i, or past one that was full. But an operator is full only at c_i >= m_i tasks, where s_i >= L: it
was not the lowest. Hence pi_i <= m_i for all i, and pi_i < m_i for the lowest one, so sum_i pi_i < sum_i m_i <= P: the
slots were not all given out, a contradiction. Slots beyond what L needs go to the then lowest operator too, so
the whole vector of s_i is max-min fair: the busiest tasks are as little busy as possible.

Why it is fast. Giving out slots one by one takes P steps. With S = sum_i r_i / o_i, the rate lambda_0 = (P - n) / S
needs at most P - n slots beyond the first ones, so the method passes floor(lambda_0 * r_i / o_i) tasks of each i on
its way: it starts there, at most 2n slots before its end. Without limits the time is O(n log n), whatever P.
"""

import heapq
import math
from collections import Counter
from collections.abc import Mapping, Sequence

from pydantic import Field

from models.capacity.observation import OperatorRates
from models.errors import Infeasible, InvalidInput
from models.schema import Format, Positive, PositiveInt


class Bids2Result(Format):
    """The best parallelism for a number of task slots."""

    parallelism: dict[str, PositiveInt] = Field(description="Tasks of each operator (pi_i); they sum to P.")
    source_rate: Positive = Field(description="Source rate that this parallelism sustains (lambda), records/s.")
    limited_by: str = Field(description="The operator that saturates first.")


def bids2(
    operators: Sequence[OperatorRates], task_slots: int, max_parallelism: Mapping[str, int] | None = None
) -> Bids2Result:
    """Give exactly `task_slots` tasks to the operators so that the source rate is the highest (StreamBed Eq. 1-4).

    Args:
        operators: all operators but the sources, with rates from a run where each had a single task.
        task_slots: P, tasks to give out.
        max_parallelism: most tasks of an operator, by name; no limit where absent.

    Raises:
        Infeasible: fewer slots than operators, or more slots than the operators may have tasks.
        InvalidInput: no operators, a name twice, a limit that is unknown or below 1, or no operator receives records.
    """
    limits = _limits(operators, max_parallelism or {})
    _check_slots(operators, task_slots, limits)
    tasks = _head_start(operators, task_slots, limits)
    # s_i is computed afresh from the tasks each time, so that rounding errors do not add up.
    lowest = [(_sustained(o, tasks[i]), tasks[i], i) for i, o in enumerate(operators) if tasks[i] < limits[i]]
    heapq.heapify(lowest)
    for _ in range(task_slots - sum(tasks)):
        i = lowest[0][2]
        tasks[i] += 1
        if tasks[i] < limits[i]:
            heapq.heapreplace(lowest, (_sustained(operators[i], tasks[i]), tasks[i], i))
        else:
            heapq.heappop(lowest)
    source_rate, limiting = min((_sustained(o, tasks[i]), i) for i, o in enumerate(operators))
    if not 0 < source_rate < math.inf:
        raise InvalidInput(
            f"the rates of {operators[limiting].name!r} are too large or too small to be worked with: "
            f"true_rate_per_task={operators[limiting].true_rate_per_task:g}, "
            f"records_in_per_source_record={operators[limiting].records_in_per_source_record:g}; check their units"
        )
    return Bids2Result(
        parallelism={o.name: tasks[i] for i, o in enumerate(operators)},
        source_rate=source_rate,
        limited_by=operators[limiting].name,
    )


def _sustained(operator: OperatorRates, tasks: int) -> float:
    """s_i: the source rate at which `tasks` tasks of the operator are saturated, records/s (Eq. 2 and 3)."""
    ratio = operator.records_in_per_source_record
    return tasks * operator.true_rate_per_task / ratio if ratio > 0 else math.inf


def _head_start(operators: Sequence[OperatorRates], task_slots: int, limits: Sequence[float]) -> list[int]:
    """Tasks that the method passes for certain: max(1, floor(lambda_0 r_i / o_i)), or the limit of a full operator.

    Each round that finds an operator full starts over with the others, which can then share its unused slots.
    """
    tasks = [1] * len(operators)
    need = [o.records_in_per_source_record / o.true_rate_per_task for o in operators]
    largest = max(need)
    need = [n / largest if 0 < largest < math.inf else 0.0 for n in need]
    growing = {i for i in range(len(operators)) if need[i] > 0}
    while growing:
        spare = task_slots - len(operators) - sum(tasks[i] - 1 for i in range(len(operators)) if i not in growing)
        rate = spare / sum(need[i] for i in growing)
        full = {i for i in growing if rate * need[i] >= limits[i]}
        for i in full or growing:
            tasks[i] = int(limits[i]) if i in full else max(1, math.floor(rate * need[i]))
        if not full:
            break
        growing -= full
    return tasks


def _limits(operators: Sequence[OperatorRates], max_parallelism: Mapping[str, int]) -> list[float]:
    """c_i of each operator, infinity where there is none; checks the operators on the way."""
    names = [o.name for o in operators]
    if not names:
        raise InvalidInput("at least one operator must be given, but there is none; add the operators of the job")
    twice = next((name for name, count in Counter(names).items() if count > 1), None)
    if twice is not None:
        raise InvalidInput(f"operator names must be unique, but {twice!r} stands twice; rename one of them")
    for name, limit in max_parallelism.items():
        if name not in names:
            raise InvalidInput(f"max_parallelism names {name!r}, which is no operator; known: {', '.join(names)}")
        if limit < 1:
            raise InvalidInput(f"max_parallelism of {name!r} must be at least 1, but got {limit}")
    if all(o.records_in_per_source_record == 0 for o in operators):
        raise InvalidInput(
            "at least one operator must receive records, but records_in_per_source_record is 0 for all of them; "
            "nothing would limit the source rate"
        )
    return [float(max_parallelism.get(name, math.inf)) for name in names]


def _check_slots(operators: Sequence[OperatorRates], task_slots: int, limits: Sequence[float]) -> None:
    if task_slots < len(operators):
        raise Infeasible(
            f"every operator needs a task slot: {len(operators)} operators do not fit in {task_slots} slots; "
            f"give at least {len(operators)}"
        )
    if task_slots > sum(limits):
        raise Infeasible(
            f"every slot must get a task, but with their max_parallelism the operators may have {sum(limits):.0f} "
            f"tasks, fewer than the {task_slots} slots; give fewer slots or raise max_parallelism"
        )
