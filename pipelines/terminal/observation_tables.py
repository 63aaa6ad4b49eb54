"""An observed job on a terminal."""

from typing import Final

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from models.capacity.observed.record import ObservedJob, ObservedVertex, ObservedWorker, SuspectedLimit
from models.wording import amount
from pipelines.terminal.tables import table

_BYTES = ((2**40, "TiB"), (2**30, "GiB"), (2**20, "MiB"), (2**10, "KiB"))


def observed_view(observed: ObservedJob) -> Group:
    """The vertices, the rates, what bounds the job, and how far it would go."""
    bound = observed.bound_by
    lines: list[RenderableType] = [
        Text(f"{observed.job} ({observed.id}), observed for {observed.observed_s:,.0f} s", style="bold"),
        _vertices(observed),
        Text(_rates(observed)),
        Text(f"{bound.title}: {bound.sentence}", style="bold" if bound.vertex else ""),
    ]
    if bound.remedy is not None:
        lines.append(Text(f"what would lift it: {bound.remedy} ({bound.effect_in_words})"))
    if observed.suspected_limit is not None:
        lines += _limit(observed.suspected_limit)
    lines.append(Text(_capacity(observed)))
    if observed.checkpoints is not None:
        last = observed.checkpoints
        lines.append(Text(f"state {_bytes(last.state_bytes)}; the last checkpoint took {last.duration_s:.3g} s"))
    lines += [Text(_worker(w)) for w in observed.workers]
    lines += [Text(f"note: {remark}") for remark in observed.remarks]
    return Group(*lines)


def _vertices(observed: ObservedJob) -> Table:
    """Columns that say nothing of any vertex are left out."""
    cells = [_cells(one) for one in observed.vertices]
    shown = [name for name in _COLUMNS if any(row[name] not in _COLUMNS[name] for row in cells)]
    rows = table("vertex", "tasks", *shown, wrap=("vertex",))
    for one, row in zip(observed.vertices, cells, strict=True):
        style = "bold" if one.name == observed.bound_by.vertex else None
        rows.add_row(Text(one.name), str(one.parallelism), *(row[name] for name in shown), style=style)
    return rows


_COLUMNS: Final = {
    "records/s": (),
    "true rate": ("-",),
    "busy": ("-",),
    "held": ("-", "0%"),
    "out/in": ("-",),
    "share": ("-", "100%"),
    "state": ("-", "0 bytes"),
    "read/s": ("-", "0 bytes"),
    "written/s": ("-", "0 bytes"),
    "cached": ("-",),
}
"""Columns, each with the cells that say nothing."""


def _cells(one: ObservedVertex) -> dict[str, str]:
    """Busyness as mean and fullest task."""
    busy = _share(one.busyness)
    if one.parallelism > 1 and one.fullest_busyness is not None and busy != _share(one.fullest_busyness):
        busy = f"{busy}, {_share(one.fullest_busyness)}"
    return {
        "records/s": one.state if one.state == "finished" else _number(one.observed_rate),
        "true rate": _number(one.true_rate),
        "busy": busy,
        "held": _share(one.backpressure),
        "out/in": "-" if one.selectivity is None else f"{one.selectivity:.3g}",
        "share": _share(one.fullest_share),
        "state": "-" if one.state_bytes is None else _bytes(one.state_bytes),
        "read/s": "-" if one.state_read is None else _bytes(one.state_read),
        "written/s": "-" if one.state_written is None else _bytes(one.state_written),
        "cached": _share(one.cache_hit_rate),
    }


def _rates(observed: ObservedJob) -> str:
    known = []
    if observed.arriving_rate is not None:
        known.append(f"{amount(observed.arriving_rate)} records/s arrive")
    elif observed.consumed_rate is not None:
        known.append("what arrives is unknown")
    if observed.consumed_rate is not None:
        known.append(f"{amount(observed.consumed_rate)} are taken")
    if observed.lag_records is not None:
        grows = observed.lag_growth or 0.0
        trend = f", {'growing' if grows > 0 else 'falling'} by {amount(abs(grows))}/s" if abs(grows) >= 1 else ""
        known.append(f"{amount(observed.lag_records)} records wait{trend}")
    if observed.watermark_lag_s is not None:
        known.append(f"event time is {observed.watermark_lag_s:.3g} s behind")
    return "; ".join(known) or "nothing is known of the sources' rates"


def _capacity(observed: ObservedJob) -> str:
    if observed.capacity is None:
        return "how far it would go is unknown"
    mst = observed.capacity.mst
    return (
        f"as deployed it takes {amount(mst.value)} records/s ({amount(mst.low)} to {amount(mst.high)}, at "
        f"{mst.probability:.0%}); {observed.capacity.reason}"
    )


def _limit(limit: SuspectedLimit) -> list[RenderableType]:
    return [
        Text(
            f"{limit.certainty} limit outside Flink: {limit.vertex}, {amount(limit.rate_limit)} records/s", style="bold"
        ),
        *(Text(f"  since {one}") for one in limit.evidence),
        *(Text(f"  unclear: {one}") for one in limit.unclear),
        Text(
            f"  if so, more tasks bring nothing; in the job's file, at the operator that waits: {limit.job_file_line}"
        ),
    ]


def _worker(one: ObservedWorker) -> str:
    used = "unknown CPU" if one.cores is None else f"{one.cores:.2f} cores"
    return f"{one.name}: {used}, {_share(one.gc_share)} of the time in garbage collection, heap {_share(one.heap_used)} full"


def _number(value: float | None) -> str:
    return "-" if value is None else amount(value)


def _share(value: float | None) -> str:
    return "-" if value is None else f"{value:.0%}"


def _bytes(value: float) -> str:
    size, unit = next(((size, unit) for size, unit in _BYTES if value >= size), (1, "bytes"))
    return f"{value / size:.3g} {unit}"
