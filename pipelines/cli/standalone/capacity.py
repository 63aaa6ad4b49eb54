"""`sluice configure`, `sluice fit` and `sluice size`: the capacity models by themselves, on files."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated, Final

import numpy as np
import typer
from pydantic import BaseModel, ConfigDict, Field
from rich.markup import escape

from models.capacity.bids2 import Bids2Result, bids2
from models.capacity.observation import OperatorRates
from models.capacity.selection import Selection, select
from models.capacity.sizing import DEFAULT_HEADROOM, SlotsInterval, slots_interval, task_slots_for
from models.capacity.surrogates import Dataset, Surrogate, prediction_interval
from models.errors import Infeasible
from models.schema import PositiveInt
from pipelines.cli import app
from pipelines.cli.output import JsonOption, console, print_json, progress_console
from pipelines.inputs.files import read_as
from pipelines.inputs.measurements import Columns, read_measurements
from pipelines.terminal.tables import table

MOST_SLOTS: Final = 1_000_000


class ModelChoice(StrEnum):
    AUTO = "auto"
    LINEAR = "linear"
    LOG = "log"
    SQRT = "sqrt"


class InstanceOperator(OperatorRates):
    """An operator of a BIDS2 instance. Published instances carry further keys (ids, inputs), which are passed over."""

    model_config = ConfigDict(extra="ignore")
    max_parallelism: PositiveInt | None = Field(None, description="No more tasks than this.")


class Instance(BaseModel):
    """A BIDS2 instance: the operators without the sources. Further keys are passed over, as in published files."""

    model_config = ConfigDict(frozen=True, extra="ignore")
    operators: tuple[InstanceOperator, ...] = Field(min_length=1)


MeasurementsArgument = Annotated[Path, typer.Argument(metavar="MEASUREMENTS", help="CSV, one measured budget a row.")]
ModelOption = Annotated[ModelChoice, typer.Option("--model", help="Growth law; auto selects it by its errors.")]
MemoryColumnOption = Annotated[
    str | None, typer.Option("--memory-column", metavar="C", help="Column of the TaskManager memory, MiB.")
]
SlotsColumnOption = Annotated[str | None, typer.Option("--slots-column", metavar="C", help="Column of the task slots.")]
MstColumnOption = Annotated[str | None, typer.Option("--mst-column", metavar="C", help="Column of the MST, records/s.")]
RowsOption = Annotated[int | None, typer.Option("--rows", metavar="N", help="Use only the first N rows.")]


@app.command()
def configure(
    instance: Annotated[Path, typer.Option(metavar="FILE", help="The operators with their rates, YAML or JSON.")],
    slots: Annotated[int, typer.Option(metavar="N", max=MOST_SLOTS, help="Task slots to divide; all are used.")],
    as_json: JsonOption = False,
) -> None:
    """Divide task slots among operators (BIDS2). The answer has the highest source rate that is possible."""
    operators = read_as(instance, Instance).operators
    limits = {o.name: o.max_parallelism for o in operators if o.max_parallelism is not None}
    best = bids2(operators, slots, limits)
    if as_json:
        print_json(best)
    else:
        _print_configuration(operators, best)


@app.command()
def fit(
    measurements: MeasurementsArgument,
    model: ModelOption = ModelChoice.AUTO,
    memory_column: MemoryColumnOption = None,
    slots_column: SlotsColumnOption = None,
    mst_column: MstColumnOption = None,
    rows: RowsOption = None,
    as_json: JsonOption = False,
) -> None:
    """Fit capacity models to measurements. One of them is chosen, with the reason."""
    columns = Columns(memory_column, slots_column, mst_column)
    data = Dataset.of(read_measurements(measurements, columns, rows))
    selection = _select(data, model)
    if as_json:
        print_json(
            {
                "model": selection.model,
                "coefficients": _coefficients(selection, selection.model),
                "loocv": selection.loocv,
                "extrapolation": selection.extrapolation,
                "candidates": {name: _coefficients(selection, name) for name in selection.candidates},
                "observations": len(data),
                "reason": selection.reason,
            }
        )
    else:
        _print_candidates(selection, len(data))


@app.command()
def size(
    measurements: MeasurementsArgument,
    rate: Annotated[float, typer.Option(metavar="R", help="Target rate at the sources together, records/s.")],
    memory: Annotated[float, typer.Option(metavar="M", help="Memory of one TaskManager, MiB.")],
    model: ModelOption = ModelChoice.AUTO,
    headroom: Annotated[float, typer.Option(help="Factor on the rate that is planned for.")] = DEFAULT_HEADROOM,
    memory_column: MemoryColumnOption = None,
    slots_column: SlotsColumnOption = None,
    mst_column: MstColumnOption = None,
    rows: RowsOption = None,
    as_json: JsonOption = False,
) -> None:
    """Predict the task slots that a rate needs. The prediction extrapolates from small measurements."""
    columns = Columns(memory_column, slots_column, mst_column)
    data = Dataset.of(read_measurements(measurements, columns, rows))
    selection = _select(data, model)
    # No answer below what was measured: the fewest measured slots are one for each operator.
    fewest = int(data.task_slots.min())
    slots = slots_interval(selection.surrogate, data, memory, rate, headroom, fewest)
    predicted = prediction_interval(selection.model, data, memory, slots.value)
    by_model = {name: _slots_or_none(s, memory, rate, headroom, fewest) for name, s in selection.candidates.items()}
    remark = _outside(data, memory)
    if as_json:
        print_json(
            {
                "task_slots": slots.value,
                "interval": {"low": slots.low, "high": slots.high, "probability": slots.probability},
                "model": selection.model,
                "memory_mb": memory,
                "rate": rate,
                "headroom": headroom,
                "predicted_mst": predicted.model_dump(),
                "task_slots_by_model": by_model,
                "reason": selection.reason,
                "remarks": [remark] if remark else [],
            }
        )
        return
    console.print(
        f"[bold]{slots.value} task slots[/bold] for {rate:,.0f} records/s with {memory:,.0f} MiB per TaskManager"
    )
    console.print(f"  {_range(slots)}", soft_wrap=True)
    console.print(
        f"  predicted MST {predicted.value:,.0f} records/s ({predicted.low:,.0f} to {predicted.high:,.0f}); "
        f"planned for {headroom:g} x the rate",
        soft_wrap=True,
    )
    console.print(f"  {selection.reason}", soft_wrap=True)
    others = (f"{name} {by_model[name] or 'never'}" for name in by_model if name != selection.model)
    console.print(f"  the other models would say: {', '.join(others)}", soft_wrap=True)
    if remark:
        progress_console.print(f"note: {remark}", soft_wrap=True)


def _select(data: Dataset, model: ModelChoice) -> Selection:
    return select(data, forced=None if model is ModelChoice.AUTO else model.value)


def _coefficients(selection: Selection, name: str) -> dict[str, float]:
    """Slopes of the transformed features, and the intercept."""
    return selection.candidates[name].model_dump(include={"memory", "slots", "intercept"})


def _slots_or_none(surrogate: Surrogate, memory_mb: float, rate: float, headroom: float, fewest: int) -> int | None:
    """Task slots by one candidate; None where it never reaches the rate."""
    try:
        return task_slots_for(surrogate, memory_mb, rate, headroom, fewest)
    except Infeasible:
        return None


def _range(slots: SlotsInterval) -> str:
    if slots.high is None:
        return f"with {slots.probability:.0%} probability at least {slots.low}; the measurements set no upper limit"
    return f"with {slots.probability:.0%} probability between {slots.low} and {slots.high}"


def _outside(data: Dataset, memory_mb: float) -> str | None:
    """A remark where the memory asked for lies outside of what was measured."""
    low, high = float(np.min(data.memory_mb)), float(np.max(data.memory_mb))
    if low <= memory_mb <= high:
        return None
    if low == high:
        return f"all measurements have {low:,.0f} MiB per TaskManager, so the effect of memory is not known"
    return f"{memory_mb:,.0f} MiB lies outside of the measured {low:,.0f} to {high:,.0f} MiB per TaskManager"


def _print_configuration(operators: tuple[InstanceOperator, ...], best: Bids2Result) -> None:
    console.print(f"source rate {best.source_rate:,.0f} records/s")
    rows = table("operator", "tasks", "busyness at that rate", wrap=("operator",))
    for operator in operators:
        tasks = best.parallelism[operator.name]
        load = best.source_rate * operator.records_in_per_source_record / (tasks * operator.true_rate_per_task)
        limits = " (limits)" if operator.name == best.limited_by else ""
        rows.add_row(escape(operator.name), str(tasks), f"{load:.0%}{limits}")
    console.print(rows)


def _print_candidates(selection: Selection, observations: int) -> None:
    console.print(f"{observations} observations; errors are RMSE in records/s")
    rows = table("", "model", "memory", "slots", "intercept", "LOOCV", "extrapolation", text=("model",))
    for name, surrogate in selection.candidates.items():
        numbers = (surrogate.memory, surrogate.slots, surrogate.intercept)
        beyond = f"{selection.extrapolation[name]:,.0f}" if name in selection.extrapolation else "-"
        mark = "*" if name == selection.model else ""
        rows.add_row(mark, name, *(f"{n:.4g}" for n in numbers), f"{selection.loocv[name]:,.0f}", beyond)
    console.print(rows)
    console.print(f"* {selection.reason}", soft_wrap=True)
