"""Plans and their differences as tables for people."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from models.plan.changes import Difference, PlacementChange
from models.plan.content import Plan
from models.plan.differences import placement_changes
from models.plan.slots import SlotBundle
from models.resources.price import in_words
from models.wording import amount, natural_order
from pipelines.terminal.resource_tables import alternatives_view, resources_in_words
from pipelines.terminal.tables import table

MOST_WORKERS_NAMED = 4
MOST_MOVES_LISTED = 30


def list_view(rows: Sequence[Mapping[str, Any]]) -> Table:
    """One line for each version, from the rows that `sluice plans list --json` prints."""
    priced = any(row.get("price_per_hour") is not None for row in rows)
    columns = ("plan", "made", "by", "records/s", "MST", "slots", *["USD/h"] * priced, "moved")
    listed = table(*columns, text=("made", "by"), wrap=("plan",))
    for row in rows:
        name = Text(f"{row['job']}@{row['version']}")
        if "damaged" in row:
            listed.add_row(name, "damaged", style="red")
            continue
        figures = (amount(row[figure]) for figure in ("target_rate", "predicted_mst", "task_slots"))
        price = "" if row.get("price_per_hour") is None else f"{row['price_per_hour']:,.2f}"
        moved = "" if row["tasks_moved"] is None else str(row["tasks_moved"])
        made = row["created_at"][:16].replace("T", " ")
        listed.add_row(name, made, row["trigger"], *figures, *[price] * priced, moved)
    return listed


def plan_view(plan: Plan) -> Group:
    """The content of a plan."""
    offered = () if plan.resources is None else alternatives_view(plan.resources)
    placed = _slots(plan) if plan.slots else _placement(plan)
    parts = (_operators(plan), *_vertices(plan), *offered, placed, _cost(plan))
    return Group(*_headline(plan), *_bound(plan), *_objectives(plan), *parts, *_reasons(plan), _lineage(plan))


def difference_view(before: Plan, after: Plan, change: Difference) -> Group:
    """The changes from one plan to another."""
    parts: list[RenderableType] = [Text(f"{before.job}: version {before.version} -> {after.version}", style="bold")]
    parts.append(_figures(before, after))
    if change.parallelism or change.managed_memory:
        parts.append(_operator_changes(change))
    moves = placement_changes(before, after)
    if moves:
        parts.append(_moves(moves) if len(moves) <= MOST_MOVES_LISTED else _moves_by_operator(moves))
    parts.append(Text(summary(change)))
    return Group(*parts)


def summary(change: Difference) -> str:
    """A difference in one line."""
    changes = [f"{c.operator} {c.before} -> {c.after}" for c in change.parallelism]
    memory = [f"{c.operator} {c.before_mb:g} -> {c.after_mb:g} MiB" for c in change.managed_memory]
    moved = f"{change.tasks_moved} tasks start on another worker, {change.tasks_stopped} stop"
    return (
        f"from version {change.from_version}: tasks {', '.join(changes) or 'as before'}; "
        f"managed memory {', '.join(memory) or 'as before'}; {moved}"
    )


def _margin(plan: Plan) -> str:
    return f"headroom {plan.headroom:g}" if plan.risk is None else f"a risk of {plan.risk:.0%}"


def _needed(plan: Plan) -> str:
    """The range of the task slots needed, where the plan states it."""
    if plan.slots_needed is None:
        return ""
    needed = plan.slots_needed
    high = "no upper limit" if needed.high is None else f"{needed.high}"
    more = needed.high is not None and plan.task_slots > needed.high
    added = "; the others are added by chains, which need equal tasks, or by the policy" * more
    return f" (needed: {needed.low} to {high} with {needed.probability:.0%} probability{added})"


def _all_slots(plan: Plan) -> str:
    """The slots beside those of the capacity model."""
    if plan.vertices:
        return f", {plan.total_slots} slots as the vertices share them"
    return f" and {plan.total_slots - plan.task_slots} for sources"


def _headline(plan: Plan) -> Iterator[Text]:
    mst = plan.predicted_mst
    yield Text(f"{plan.job}@{plan.version}", style="bold").append(
        f"  for {amount(plan.target_rate)} records/s with {_margin(plan)}, made {plan.created_at}", style="none"
    )
    yield Text(
        f"predicted MST {amount(mst.value)} records/s, between {amount(mst.low)} and {amount(mst.high)} "
        f"with {mst.probability:.0%} probability"
    )
    if mst.low < plan.target_rate:
        yield Text(f"the low end of that is below the target of {amount(plan.target_rate)} records/s", style="yellow")
    yield Text(
        f"{plan.task_slots} task slots{_needed(plan)}{_all_slots(plan)}; "
        f"TaskManagers of {plan.memory_mb:,.0f} MiB"
        + (f" and {plan.slots_per_worker} slots" * bool(plan.slots_per_worker))
    )
    if plan.resources is not None:
        yield from map(Text, resources_in_words(plan.resources))


def _bound(plan: Plan) -> Iterator[Text]:
    """What bounds the job, where the plan states it."""
    bound = plan.bound_by
    if bound is None:
        return
    yield Text(bound.title, style="bold").append(f": {bound.sentence}", style="none")
    if bound.remedy is not None:
        yield Text(f"to lift it: {bound.remedy}; {bound.effect_in_words}")


def _objectives(plan: Plan) -> Iterator[Text]:
    """How the objectives are met, and which one binds, where the plan has any."""
    if plan.objectives is None:
        return
    yield Text(plan.objectives.title, style="bold")
    for one in plan.objectives.outcomes:
        yield Text(f"- {one.sentence}")


def _vertices(plan: Plan) -> Iterator[Table]:
    """What Flink deploys, where the plan states it."""
    if not plan.vertices:
        return
    rows = table("vertex", "group", "tasks", "memory MiB", "busy", wrap=("vertex",))
    for v in plan.vertices:
        memory = f"{v.managed_memory_mb:,.0f}" if v.managed_memory_mb else "-"
        busy = f"{v.predicted_busyness:.0%}"
        rows.add_row(Text(" -> ".join(v.operators)), v.slot_sharing_group or "-", str(v.parallelism), memory, busy)
    yield rows


def _operators(plan: Plan) -> Table:
    rows = table("operator", "tasks", "memory MiB", "records/s in", "busy", wrap=("operator",))
    for o in plan.operators:
        memory = f"{o.managed_memory_mb:,.0f}" if o.managed_memory_mb else "-"
        rows.add_row(
            Text(o.name), str(o.parallelism), memory, amount(o.records_in_per_s), f"{o.predicted_busyness:.0%}"
        )
    return rows


def _placement(plan: Plan) -> Table:
    """Workers with the same tasks share a row."""
    alike: dict[tuple[tuple[str, int], ...], list[str]] = {}
    order = list(plan.parallelism)
    for worker in sorted(plan.placement, key=natural_order):
        tasks = sorted(plan.placement[worker].items(), key=lambda task: order.index(task[0]))
        alike.setdefault(tuple(tasks), []).append(worker)
    rows = table("workers", "count", "tasks each", "of", wrap=("workers", "of"))
    for mix, workers in alike.items():
        content = ", ".join(f"{name} {count}" for name, count in mix)
        rows.add_row(Text(_some(workers)), str(len(workers)), str(sum(n for _, n in mix)), Text(content))
    return rows


def _slots(plan: Plan) -> Table:
    """Workers with the same shared slots share a row."""
    alike: dict[tuple[SlotBundle, ...], list[str]] = {}
    for worker in sorted(plan.slots, key=natural_order):
        alike.setdefault(tuple(sorted(plan.slots[worker], key=lambda b: b.vertices)), []).append(worker)
    rows = table("workers", "count", "slots each", "of", wrap=("workers", "of"))
    for bundles, workers in alike.items():
        content = ", ".join(f"{b.slots} of {' + '.join(b.vertices)}" for b in bundles)
        rows.add_row(Text(_some(workers)), str(len(workers)), str(sum(b.slots for b in bundles)), Text(content))
    return rows


def _some(names: list[str]) -> str:
    shown = ", ".join(names[:MOST_WORKERS_NAMED])
    return shown if len(names) <= MOST_WORKERS_NAMED else f"{shown}, ... {names[-1]}"


def _cost(plan: Plan) -> Table:
    rows = table(f"placement ({plan.placement_policy}, {plan.placement_status})", "cost", "threshold")
    for name in ("cpu", "io", "net"):
        rows.add_row(name, f"{getattr(plan.cost, name):.4f}", f"{getattr(plan.thresholds, name):.4f}")
    return rows


def _reasons(plan: Plan) -> Iterator[Text]:
    yield Text("Why", style="bold")
    for reason in (*plan.reasons, *(f"{operator.name}: {operator.reason}" for operator in plan.operators)):
        yield Text(f"- {reason}")
    if plan.difference is not None:
        yield Text(f"- {summary(plan.difference)}")


def _lineage(plan: Plan) -> Table:
    lineage = plan.lineage
    rows = table("lineage", "", wrap=("",))
    facts = lineage.model_dump(exclude={"digests"}, exclude_none=True)
    for name, value in facts.items():
        rows.add_row(name.replace("_", " "), Text(str(value)))
    for name, value in lineage.digests.items():
        rows.add_row(f"{name} digest", Text(value[:12]))
    return rows


def _figures(before: Plan, after: Plan) -> Table:
    rows = table("", f"@{before.version}", f"@{after.version}")
    old, new = before.resources, after.resources
    for name, one, two in (
        ("target rate, records/s", before.target_rate, after.target_rate),
        ("predicted MST, records/s", before.predicted_mst.value, after.predicted_mst.value),
        ("task slots", before.task_slots, after.task_slots),
        ("TaskManagers", len(before.placement), len(after.placement)),
        ("TaskManager memory, MiB", before.memory_mb, after.memory_mb),
    ):
        rows.add_row(name, amount(one), amount(two), style="bold" if one != two else None)
    cores = [None if found is None else found.total_cores for found in (old, new)]
    prices = [None if found is None else found.price_per_hour for found in (old, new)]
    for name, pair in (
        ("cores", ["unknown" if c is None else f"{c:,g}" for c in cores]),
        ("price, USD per hour", ["unknown" if p is None else in_words(p) for p in prices]),
    ):
        if pair != ["unknown", "unknown"]:
            rows.add_row(name, *pair, style="bold" if pair[0] != pair[1] else None)
    return rows


def _operator_changes(change: Difference) -> Table:
    tasks = {c.operator: f"{c.before} -> {c.after}" for c in change.parallelism}
    memory = {c.operator: f"{c.before_mb:,.0f} -> {c.after_mb:,.0f}" for c in change.managed_memory}
    rows = table("operator", "tasks", "memory MiB", wrap=("operator",))
    for name in dict.fromkeys([*tasks, *memory]):
        rows.add_row(Text(name), tasks.get(name, ""), memory.get(name, ""))
    return rows


def _moves(moves: Sequence[PlacementChange]) -> Table:
    rows = table("operator", "worker", "tasks", wrap=("operator", "worker"))
    for move in moves:
        rows.add_row(Text(move.operator), Text(move.worker), f"{move.before} -> {move.after}")
    return rows


def _moves_by_operator(moves: Sequence[PlacementChange]) -> Table:
    """The numbers of tasks that start and stop, if there are too many to list; `--json` prints each."""
    rows = table("operator", "tasks that start", "on workers", "tasks that stop", "on workers", wrap=("operator",))
    for operator in dict.fromkeys(move.operator for move in moves):
        steps = [move.after - move.before for move in moves if move.operator == operator]
        starts, stops = [n for n in steps if n > 0], [-n for n in steps if n < 0]
        rows.add_row(Text(operator), str(sum(starts)), str(len(starts)), str(sum(stops)), str(len(stops)))
    return rows
