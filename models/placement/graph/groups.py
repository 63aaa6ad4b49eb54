"""Skewed operators, split into placement groups with loads of their own (CAPSys section 5.2).

The cost model takes the tasks of an operator as alike. Where one task gets more than another, its tasks are put into
groups of equal load, and each group becomes a layer of the search like any operator: cost and search stay as they are.

| symbol | meaning | unit |
|---|---|---|
| s_t | share of its operator's load that task t takes; sums to 1 over the operator | ratio |
| g, p_g | placement group, number of its tasks | |
| U_g = U_i p_i mean_{t in g} s_t | load of one task of the group, from the operator's mean load U_i | as U_i |

An edge to a split operator becomes one edge to each group. On a hash edge a group gets the shares of its tasks, since
there the load follows the records; on a rebalance or broadcast edge every task gets the same. So equal shares give the
operator's own costs. A forward edge joins subtask i to subtask i: operators that forward edges join are split alike.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from models.dataflow import Dataflow, Edge, OperatorLoad, Partitioning
from models.errors import InvalidInput
from models.placement.problem import edge_weights
from models.placement.results import Subtasks
from models.plan.parts import Placement

TOLERANCE: Final = 0.05
"""Loads of a group differ by no more than this share of the smallest."""

Shares = Mapping[str, Sequence[float]]
"""Operator -> for each of its tasks, by subtask index, the share of the operator's load; any positive sum."""
Parts = Mapping[str, Sequence[Sequence[int]]]
"""Operator -> the subtask indices of each of its groups."""


@dataclass(frozen=True)
class GroupedDataflow:
    """A dataflow with groups in place of its skewed operators, and the way back."""

    dataflow: Dataflow
    """What to place. Groups of the operator `window` are called `window.g1`, `window.g2`, ..."""
    members: Mapping[str, tuple[str, tuple[int, ...]]]
    """Name in `dataflow` -> the operator it stands for, and the indices of its subtasks."""

    def merge(self, placement: Placement) -> Placement:
        """The placement of the groups by operator: worker -> operator -> number of tasks."""
        merged: Placement = {}
        for worker, tasks in placement.items():
            own = merged.setdefault(worker, {})
            for name, number in tasks.items():
                operator = self.members[name][0]
                own[operator] = own.get(operator, 0) + number
        return merged

    def merge_subtasks(self, placement: Placement, subtasks: Subtasks | None) -> Subtasks:
        """Which subtasks of the operators run where; the tasks of a group are alike, those of an operator are not.

        Args:
            subtasks: indices within the groups, where forward edges settle them.
        """
        left = {name: iter(indices) for name, (_, indices) in self.members.items()}
        merged: dict[str, dict[str, list[int]]] = {}
        for worker, tasks in placement.items():
            own = merged.setdefault(worker, {})
            for name, number in tasks.items():
                operator, indices = self.members[name]
                if subtasks is None:
                    taken = [next(left[name]) for _ in range(number)]
                else:
                    taken = [indices[i] for i in subtasks[worker][name]]
                own.setdefault(operator, []).extend(taken)
        return {w: {o: tuple(sorted(indices)) for o, indices in tasks.items()} for w, tasks in merged.items()}


def split_skewed(dataflow: Dataflow, shares: Shares, tolerance: float = TOLERANCE) -> GroupedDataflow:
    """Put tasks of (nearly) equal load into one group, the heaviest first; an operator without skew stays as it is.

    Args:
        shares: of the operators that may be skewed.
        tolerance: by what share of the lightest task's load the tasks of a group may differ; they then count as their
            mean.

    Raises:
        InvalidInput: an unknown operator, not one share for each task, a share that is negative or not finite, or
            shares that sum to 0.
    """
    if not 0 <= tolerance < float("inf"):
        raise InvalidInput(f"the tolerance of placement groups must be at least 0, but got {tolerance}")
    _check_shares(dataflow, shares)
    classes = {
        o.name: _classes(shares[o.name], tolerance) if o.name in shares else [0] * o.parallelism
        for o in dataflow.operators
    }
    parts: dict[str, list[list[int]]] = {}
    for joined in _joined_by_forward(dataflow) if shares else ():
        alike: dict[tuple[int, ...], list[int]] = {}
        for task, key in enumerate(zip(*(classes[name] for name in joined), strict=True)):
            alike.setdefault(key, []).append(task)
        parts |= {name: [alike[key] for key in sorted(alike)] for name in joined if len(alike) > 1}
    return split_into(dataflow, shares, parts)


def split_into(dataflow: Dataflow, shares: Shares, parts: Parts) -> GroupedDataflow:
    """Split operators into the given groups; others stay whole.

    Raises:
        InvalidInput: as `split_skewed`; or the groups of an operator do not hold each of its tasks once, or differ
            from those of an operator that a forward edge joins it to.
    """
    _check_shares(dataflow, shares)
    _check_parts(dataflow, parts)
    groups = {o.name: _groups(o, parts, shares) for o in dataflow.operators}
    edges = [edge for o in dataflow.operators for edge in _edges_from(o, dataflow, groups)]
    return GroupedDataflow(
        dataflow=dataflow.model_copy(
            update={"operators": tuple(g.load for group in groups.values() for g in group), "edges": tuple(edges)}
        ),
        members={g.load.name: (name, g.tasks) for name, group in groups.items() for g in group},
    )


@dataclass(frozen=True)
class _Group:
    load: OperatorLoad
    tasks: tuple[int, ...]
    share: float
    """Share of its operator's load."""


def _groups(operator: OperatorLoad, parts: Parts, shares: Shares) -> list[_Group]:
    if operator.name not in parts:
        return [_Group(operator, tuple(range(operator.parallelism)), 1.0)]
    given = shares.get(operator.name, [1.0] * operator.parallelism)
    groups = []
    for number, tasks in enumerate(parts[operator.name], start=1):
        share = sum(given[t] for t in tasks) / sum(given)
        factor = share * operator.parallelism / len(tasks)
        load = operator.model_copy(
            update={
                "name": f"{operator.name}.g{number}",
                "parallelism": len(tasks),
                **{key: getattr(operator, key) * factor for key in ("cpu", "io", "net")},
            }
        )
        groups.append(_Group(load, tuple(tasks), share))
    return groups


def _edges_from(operator: OperatorLoad, dataflow: Dataflow, groups: Mapping[str, Sequence[_Group]]) -> list[Edge]:
    """The edges between groups that stand for those of the operator; their shares sum to 1 where any is split."""
    outgoing = [e for e in dataflow.edges if e.upstream == operator.name]
    split = any(len(groups[e.downstream]) > 1 for e in outgoing)
    weights = edge_weights(outgoing, {o.name: o.parallelism for o in dataflow.operators})
    edges = []
    for edge, weight in zip(outgoing, weights, strict=True):
        for here, above in enumerate(groups[operator.name]):
            for there, below in enumerate(groups[edge.downstream]):
                if edge.partitioning is Partitioning.FORWARD and here != there:
                    continue
                share = min(1.0, weight * _portion(edge, below, groups)) if split else edge.share
                if share > 0:  # a group that gets no records has no edge
                    update = {"upstream": above.load.name, "downstream": below.load.name, "share": share}
                    edges.append(edge.model_copy(update=update))
    return edges


def _portion(edge: Edge, group: _Group, groups: Mapping[str, Sequence[_Group]]) -> float:
    """Share of the edge's records that go to the group."""
    if edge.partitioning is Partitioning.FORWARD:
        return 1.0
    if edge.partitioning is Partitioning.HASH:
        return group.share
    return len(group.tasks) / sum(len(g.tasks) for g in groups[edge.downstream])


def _classes(shares: Sequence[float], tolerance: float) -> list[int]:
    """A number for each task, from 0 for the heaviest; equal for tasks whose loads differ by the tolerance at most."""
    classes = [0] * len(shares)
    number = 0
    lightest_first = sorted(range(len(shares)), key=lambda t: shares[t])
    least = shares[lightest_first[0]]
    for task in lightest_first:
        if shares[task] > least * (1 + tolerance) * (1 + 1e-9):
            number, least = number + 1, shares[task]
        classes[task] = number
    return [number - c for c in classes]


def _joined_by_forward(dataflow: Dataflow) -> list[list[str]]:
    import networkx as nx

    graph: nx.Graph[str] = nx.Graph()
    graph.add_nodes_from(o.name for o in dataflow.operators)
    graph.add_edges_from((e.upstream, e.downstream) for e in dataflow.edges if e.partitioning is Partitioning.FORWARD)
    return [sorted(names) for names in nx.connected_components(graph)]


def _check_shares(dataflow: Dataflow, shares: Shares) -> None:
    parallelism = {o.name: o.parallelism for o in dataflow.operators}
    for name, given in shares.items():
        if name not in parallelism:
            raise InvalidInput(
                f"load shares must name operators of the dataflow, but {name!r} is none of them; "
                f"known operators: {', '.join(parallelism)}"
            )
        if len(given) != parallelism[name]:
            raise InvalidInput(f"{name!r} has {parallelism[name]} tasks, but {len(given)} load shares; give one each")
        wrong = [share for share in given if not 0 <= share < float("inf")]
        if wrong or not sum(given) > 0:
            raise InvalidInput(
                f"load shares must be finite and at least 0, with a sum above 0, but those of {name!r} "
                f"{f'have {wrong[0]}' if wrong else 'sum to 0'}"
            )


def _check_parts(dataflow: Dataflow, parts: Parts) -> None:
    names = {o.name for o in dataflow.operators}
    if unknown := sorted(set(parts) - names):
        raise InvalidInput(f"groups must name operators of the dataflow, but {unknown[0]!r} is none of them")
    for o in dataflow.operators:
        if o.name in parts:
            tasks = sorted(t for part in parts[o.name] for t in part)
            if tasks != list(range(o.parallelism)) or not all(parts[o.name]):
                raise InvalidInput(
                    f"the groups of {o.name!r} must hold each of its {o.parallelism} tasks once, and none be empty"
                )
            made = {f"{o.name}.g{number}" for number in range(1, len(parts[o.name]) + 1)}
            if made & names:
                raise InvalidInput(f"groups of {o.name!r} need the name {min(made & names)!r}; rename that operator")
    whole = {o.name: [list(range(o.parallelism))] for o in dataflow.operators}
    alike = {name: [list(part) for part in parts.get(name, whole[name])] for name in names}
    for e in dataflow.edges:
        if e.partitioning is Partitioning.FORWARD and alike[e.upstream] != alike[e.downstream]:
            raise InvalidInput(
                f"operators that a forward edge joins must be split alike, but {e.upstream!r} and {e.downstream!r} "
                "are not; give both the same groups"
            )
