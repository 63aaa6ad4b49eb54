"""The TaskManagers of a plan for people: cores, memory and price, and the worker kinds that were offered."""

from collections.abc import Iterator
from decimal import Decimal

from rich.table import Table
from rich.text import Text

from models.resources.planned import PlanResources, Price
from models.resources.price import in_words
from pipelines.terminal.tables import table


def resources_in_words(found: PlanResources) -> Iterator[str]:
    """TaskManagers with what they have in all and, where prices are known, what they cost."""
    of_kind = "" if found.kind is None else f" of kind {found.kind}"
    each = f", {found.cores:g} each" if found.cores is not None else ""
    cores = "" if found.total_cores is None else f"{found.total_cores:,g} cores{each}; "
    yield (
        f"{found.task_managers} TaskManager{'s' * (found.task_managers > 1)}{of_kind}: {cores}"
        f"{found.total_memory_mb:,.0f} MiB, {found.memory_mb:,.0f} each"
    )
    if found.price is not None:
        yield f"{in_words(found.price.per_hour)} {found.price.currency} per hour{_range(found.price)}"


def alternatives_view(found: PlanResources) -> Iterator[Table]:
    """The worker kinds that were offered, the cheapest first; nothing where there was no choice."""
    if len(found.alternatives) < 2:
        return
    rows = table("worker kind", "slots", "cores", "memory MiB", "TaskManagers", "USD/h", "", wrap=("worker kind", ""))
    for a in found.alternatives:
        cores, memory = "" if a.cores is None else f"{a.cores:g}", "" if a.memory_mb is None else f"{a.memory_mb:,.0f}"
        count = "-" if a.task_managers is None else f"{a.task_managers}"
        note = a.why_not or ("picked" if a.kind == found.kind else "possible")
        rows.add_row(Text(a.kind), str(a.slots), cores, memory, count, _amount(a.price_per_hour), Text(note))
    yield rows


def _amount(price: Decimal | None) -> str:
    return "-" if price is None else in_words(price)


def _range(price: Price) -> str:
    """What the range of the task slots means in money."""
    if price.low is None:
        return ""
    if price.high is None:
        return f" (at the low end of the task slots needed: {in_words(price.low)}; at the high end: unknown)"
    return f" ({in_words(price.low)} to {in_words(price.high)} over the range of the task slots needed)"
