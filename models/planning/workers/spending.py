"""A price limit: whether the worker kind that was picked is within it, and how many of given workers are.

Given workers are all used where they cost no more than the limit. Where they cost more, equal ones are used up to the limit,
and of different ones those that hold the plan at the least price (a covering knapsack, solved exactly):

    min sum_k p_k x_k    so that  sum_k s_k x_k >= S,  sum_k c_k x_k >= C,  0 <= x_k <= n_k whole

with p, s, c and n price, slots, cores and number of alike workers, S and C as in `models/planning/kinds.py`.
"""

import math
from collections.abc import Sequence
from decimal import Decimal

import numpy as np

from models.cluster import Cluster, Worker, WorkerOffer
from models.errors import Infeasible, InvalidInput
from models.planning.workers.kinds import PickedKind
from models.resources.price import in_words


def check_prices_known(offered: Cluster | WorkerOffer) -> None:
    """Check that a price limit can be held.

    Raises:
        InvalidInput: a worker has no price.
    """
    workers: Sequence[Worker] = offered.workers if isinstance(offered, Cluster) else offered.kinds
    unknown = next((w.name for w in workers if w.price_per_hour is None), None)
    if unknown is not None:
        raise InvalidInput(
            f"a price limit needs the price of every worker, but {unknown!r} of cluster {offered.name!r} has none; state its "
            "'price_per_hour' in the cluster's file, or leave out 'at most ... $/h'"
        )


def check_within(picked: PickedKind, limit: Decimal) -> None:
    """Check the price of the cheapest kind.

    Raises:
        Infeasible: it is above the limit; the message names it.
    """
    price = picked.count * (picked.kind.price_per_hour or Decimal(0))
    if price > limit:
        raise Infeasible(_too_dear(f"{picked.count} of kind {picked.kind.name}", price, limit))


def affordable(cluster: Cluster, slots: int, busy_cores: float, limit: Decimal) -> tuple[Cluster, str | None]:
    """The workers of a cluster that a plan may use, and a remark where that are not all.

    Args:
        slots: that the plan takes.
        busy_cores: that its tasks keep busy.
        limit: USD/h.

    Raises:
        Infeasible: no workers that hold the plan are within the limit; the message names the least price that would do.
    """
    total = sum((w.price_per_hour or Decimal(0) for w in cluster.workers), Decimal(0))
    if total <= limit or slots > cluster.slots:
        return cluster, None
    groups = _alike(cluster.workers)
    counts = _cheapest(groups, slots, busy_cores)
    price = sum((n * (g[0].price_per_hour or Decimal(0)) for n, g in zip(counts, groups, strict=True)), Decimal(0))
    used = sum(counts)
    if price > limit:
        raise Infeasible(_too_dear(f"{used} of the {len(cluster.workers)} workers", price, limit))
    if len(groups) == 1 and price > 0:
        counts = [max(used, int(limit // (price / used)))]
    kept = {w.name for n, group in zip(counts, groups, strict=True) for w in group[:n]}
    workers = tuple(w for w in cluster.workers if w.name in kept)
    remark = (
        f"{len(workers)} of the {len(cluster.workers)} workers run tasks, since all of them cost {in_words(total)} USD per "
        f"hour, and at most {in_words(limit)} may be spent"
    )
    return cluster.model_copy(update={"workers": workers}), remark


def _too_dear(what: str, price: Decimal, limit: Decimal) -> str:
    return (
        f"no workers that hold the plan cost at most {in_words(limit)} $/h: the cheapest are {what}, for {in_words(price)} USD "
        f"per hour; allow {in_words(price)} $/h, offer cheaper workers, or lower what is asked for"
    )


def _alike(workers: Sequence[Worker]) -> list[list[Worker]]:
    groups: dict[tuple[object, ...], list[Worker]] = {}
    for worker in workers:
        groups.setdefault((worker.slots, worker.cores, worker.price_per_hour), []).append(worker)
    return list(groups.values())


def _cheapest(groups: Sequence[Sequence[Worker]], slots: int, busy_cores: float) -> list[int]:
    """How many workers of each group hold the plan at the least price; all where cores do not suffice even so."""
    from scipy.optimize import Bounds, LinearConstraint, milp

    have = np.array([len(group) for group in groups])
    rows = [[float(group[0].slots) for group in groups]]
    least = [float(slots)]
    if all(group[0].cores is not None for group in groups):
        rows.append([float(group[0].cores or 0) for group in groups])
        least.append(min(busy_cores * (1 - 1e-12), math.fsum(n * c for n, c in zip(have, rows[1], strict=True))))
    prices = np.array([float(group[0].price_per_hour or 0) for group in groups])
    found = milp(
        prices,
        constraints=LinearConstraint(np.array(rows), lb=least),
        bounds=Bounds(0, have),
        integrality=1,
        options={"mip_rel_gap": 0.0},
    )
    assert found.x is not None, "all workers together hold the plan"
    return [round(n) for n in found.x]
