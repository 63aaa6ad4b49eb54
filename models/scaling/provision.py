"""Tasks from what a record costs at each operator, for a start before a policy has measured anything.

Notation: c_i seconds of a task per record into operator i, r_i records into it per record of the sources (StreamBed
Table 1). One task does 1 / c_i records/s. Contention, cache misses, skew and bursts are not in a job's nominal costs.
"""

import math
from collections.abc import Mapping
from typing import Final

from models.capacity.bids2 import bids2
from models.capacity.observation import OperatorRates
from models.job import Job, records_in_per_source_record
from models.scaling.limits import most_tasks, within

HEADROOM: Final = 1.2
"""Factor on the rate that a job is provisioned for (overprovisioning of DS2, evaluation of autoscalers, section 6.1)."""


def sustainable_rate(job: Job, slots: int) -> float:
    """The highest rate of the sources together that `slots` tasks sustain, sources included, records/s.

    The slots are given out as BIDS2 does (StreamBed section 5), which evens out the load of all tasks.

    Raises:
        Infeasible: fewer slots than operators.
    """
    ratio, most = records_in_per_source_record(job), most_tasks(job)
    operators = [
        OperatorRates(name=o.name, true_rate_per_task=1 / o.cost.thread_s, records_in_per_source_record=ratio[o.name])
        for o in job.operators
    ]
    usable = sum(most.get(o.name, slots) for o in job.operators)
    return bids2(operators, min(slots, usable), most).source_rate


def provision(job: Job, rate: float, slots: int, cost_s: Mapping[str, float] | None = None) -> dict[str, int]:
    """Tasks with which every operator has HEADROOM at a rate; fewer where slots or the operators' limits say so.

    Args:
        cost_s: c_i by operator; the nominal thread time by default.

    Raises:
        Infeasible: fewer slots than operators.
    """
    ratio = records_in_per_source_record(job)
    costs = cost_s if cost_s is not None else {o.name: o.cost.thread_s for o in job.operators}
    wanted = {
        o.name: max(1, math.ceil(HEADROOM * rate * ratio[o.name] * costs[o.name] * (1 - 1e-9))) for o in job.operators
    }
    return within(wanted, dict.fromkeys(wanted, 1), slots, most_tasks(job)).parallelism
