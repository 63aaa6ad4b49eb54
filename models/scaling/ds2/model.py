"""DS2: the parallelism of all operators at once, from their true rates (DS2 section 3.2, Eq. 5-8).

Notation (DS2 Table 2):

    A_ji         records from operator j to i per record out of j; in the paper 1 where j sends to i
    p_i          tasks of operator i now
    o_i[lp]      its true processing rate, summed over its tasks, records/s (Eq. 5)
    o_i[lo]      its true output rate, summed over its tasks, records/s (Eq. 6)
    o_i[lo]*     its output rate if it and all operators upstream keep up with their input, records/s
    pi_i         tasks it needs

    o_i[lo]* = rate at which it must read x its selectivity,        for sources
               o_i[lo] / o_i[lp] * sum_j A_ji o_j[lo]*              otherwise                                (Eq. 8)
    pi_i     = ceil( sum_j A_ji o_j[lo]* / (o_i[lp] / p_i) )                                                 (Eq. 7)

One pass in topological order computes both. An edge carries all of the upstream operator's output, unless its share is
given. An over-provisioning factor f asks for ceil(pi_i * (1 + f)) tasks, pi_i before rounding (evaluation of autoscalers, 4.2).

Rulings: at least one task each. A value that exceeds a whole number by less than one part in a billion is that
number: a rate of 10 tasks' worth must not ask for 11 because of rounding. Sources keep their parallelism (the policy
does not scale them), unless their true output rate is given: then pi = ceil(rate / (o[lo] / p)). No operator gets more
tasks than it may have. Memory stays as it is.
"""

import math

from models.errors import InvalidInput
from models.scaling.decisions.tasks import round_up
from models.scaling.policy import Decision
from models.scaling.rates import OperatorMetrics, Rates
from models.wording import amount
from models.wording import tasks as task_count


def ds2(rates: Rates, over_provisioning: float = 0.0) -> Decision:
    """The fewest tasks with which every operator keeps up with the sources' rates, if rates scale linearly.

    Args:
        rates: of one interval.
        over_provisioning: f, the share of tasks that is added.

    Raises:
        InvalidInput: a demand over a rate is beyond what a float can hold.
    """
    output: dict[str, float] = {}  # o_i[lo]*
    exact: dict[str, float] = {}
    parallelism: dict[str, int] = {}
    reasons: dict[str, str] = {}
    for name in rates.order:
        metrics = rates.operators.get(name)
        upstream = rates.upstream(name)
        demand = sum(output[u] * rates.share(u, name) for u in upstream) if upstream else rates.sent(name)
        output[name] = demand * _selectivity(metrics) if metrics and upstream else demand
        if metrics is None:
            continue
        capacity = metrics.true_processing_rate if upstream else metrics.true_output_rate
        if not capacity:
            parallelism[name] = metrics.parallelism
            reasons[name] = f"a source without a true output rate keeps its {task_count(metrics.parallelism)}"
            continue
        exact[name] = demand / (capacity / metrics.parallelism) * (1 + over_provisioning)
        if not math.isfinite(exact[name]):
            raise InvalidInput(
                f"the rates of {name!r} cannot be worked with: {demand:g} records/s to take on, {capacity:g} records/s "
                f"by {task_count(metrics.parallelism)}; check their units"
            )
        tasks = round_up(exact[name])
        parallelism[name] = granted = metrics.at_most(tasks)
        task_rate = capacity / metrics.parallelism
        need = _need(bool(upstream), demand, task_rate, exact[name], over_provisioning)
        reasons[name] = f"{need}, so {_change(tasks, granted, metrics.parallelism)}"
    memory = {name: m.memory_mb for name, m in rates.operators.items() if m.memory_mb is not None}
    return Decision(parallelism=parallelism, exact=exact, memory_mb=memory, reasons=reasons)


def _selectivity(metrics: OperatorMetrics) -> float:
    """Records out per record in: o_j[lo] / o_j[lp] of Eq. 8; 0 where nothing is passed on."""
    if not metrics.true_output_rate or not metrics.true_processing_rate:
        return 0.0
    return metrics.true_output_rate / metrics.true_processing_rate


def _need(fed: bool, demand: float, task_rate: float, exact: float, over_provisioning: float) -> str:
    what = "come in" if fed else "must be emitted"
    spare = f" with {over_provisioning:.0%} to spare" if over_provisioning else ""
    return f"{amount(demand)} records/s {what} and one task can do {amount(task_rate)}: {exact:,.6g}{spare}"


def _change(tasks: int, granted: int, before: int) -> str:
    limit = f" but at most {granted} are allowed," if granted < tasks else ""
    return f"{task_count(tasks)},{limit} " + ("as now" if granted == before else f"instead of {before}")
