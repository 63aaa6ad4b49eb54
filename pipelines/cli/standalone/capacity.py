"""`sluice fit` and `sluice size`: the capacity models by themselves, on files."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from models.capacity.doubt import why_wide
from models.capacity.exploration.question import SizingQuestion, would_help
from models.capacity.growth.capacity_model import CapacityModel
from models.capacity.growth.dataset import Dataset
from models.capacity.growth.regressions import REGRESSIONS, Regression, fit_regression, loocv_rmse
from models.capacity.growth.twin import TwinCurve
from models.capacity.observation import Observation
from models.capacity.selection import Selection, select
from models.capacity.sizing import Margin, SlotsInterval, check_amounts, check_margin, slots_interval, task_slots_for
from models.errors import Infeasible, InvalidInput
from models.resources.planned import PlanResources
from models.wording import amount
from pipelines.cli import app
from pipelines.cli.options.standard import JsonOption
from pipelines.cli.output import console, print_json, progress_console
from pipelines.inputs.catalogue import load_cluster_or_offer
from pipelines.inputs.measurements import Columns, read_measurements
from pipelines.inputs.plan_request import DEFAULT_PRECISION
from pipelines.terminal.resource_tables import alternatives_view, resources_in_words
from pipelines.terminal.tables import table


class ModelChoice(StrEnum):
    AUTO = "auto"
    LINEAR = "linear"
    LOG = "log"
    SQRT = "sqrt"
    POWER = "power"
    EVEN = "even"
    SKEWED = "skewed"


MeasurementsArgument = Annotated[Path, typer.Argument(metavar="MEASUREMENTS", help="CSV, one measured budget a row.")]
ModelOption = Annotated[
    ModelChoice, typer.Option("--model", help="Growth law; auto weighs all of them by their errors.")
]
MemoryColumnOption = Annotated[
    str | None, typer.Option("--memory-column", metavar="C", help="Column of the TaskManager memory, MiB.")
]
SlotsColumnOption = Annotated[str | None, typer.Option("--slots-column", metavar="C", help="Column of the task slots.")]
MstColumnOption = Annotated[str | None, typer.Option("--mst-column", metavar="C", help="Column of the MST, records/s.")]
RowsOption = Annotated[int | None, typer.Option("--rows", metavar="N", help="Use only the first N rows.")]


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
    """Fit growth laws to measurements. Leave-one-out errors decide how much each of them counts."""
    columns = Columns(memory_column, slots_column, mst_column)
    data = Dataset.of(read_measurements(measurements, columns, rows))
    selection = _select(data, model)
    regressions: dict[str, Regression] = {law: fit_regression(law, data) for law in REGRESSIONS}
    errors: dict[str, float] = {law: loocv_rmse(law, data) for law in REGRESSIONS}
    if as_json:
        print_json(
            {
                "model": selection.model.name,
                "weights": selection.model.weights,
                "loocv": {law: candidate.loocv_rmse for law, candidate in selection.candidates.items()},
                "log_density": {law: candidate.log_density for law, candidate in selection.candidates.items()},
                "loocv_rmse": selection.loocv_rmse,
                "regressions": {
                    law: {"coefficients": _coefficients(regression), "loocv": errors[law]}
                    for law, regression in regressions.items()
                },
                "observations": len(data),
                "reason": selection.reason,
            }
        )
    else:
        _print_candidates(selection, len(data))
        _print_regressions(regressions, errors)


@app.command()
def size(
    measurements: MeasurementsArgument,
    rate: Annotated[float, typer.Option(metavar="R", help="Target rate at the sources together, records/s.")],
    memory: Annotated[float, typer.Option(metavar="M", help="Memory of one TaskManager, MiB.")],
    model: ModelOption = ModelChoice.AUTO,
    risk: Annotated[
        float | None,
        typer.Option(
            metavar="P",
            help="Probability that the slots do not sustain the rate. Default: 0.1, but with the models linear, log and sqrt "
            "StreamBed's headroom of 1.1.",
        ),
    ] = None,
    headroom: Annotated[
        float | None,
        typer.Option(metavar="F", help="Factor on the rate that the expected MST must reach, in place of a risk."),
    ] = None,
    twin: Annotated[
        str | None,
        typer.Option(
            metavar="JOB",
            help="Simulate this job, by name or path, at the measured sizes and beyond; what it predicts is weighed with the "
            "growth laws. Its file must state its costs.",
        ),
    ] = None,
    measured_on: Annotated[
        str, typer.Option(metavar="CLUSTER", help="For --twin: cluster of the measurements, by name or path.")
    ] = "testbed",
    memory_column: MemoryColumnOption = None,
    slots_column: SlotsColumnOption = None,
    mst_column: MstColumnOption = None,
    rows: RowsOption = None,
    cluster: Annotated[
        str | None,
        typer.Option(
            metavar="CLUSTER",
            help="Cluster of the catalogue, or path of a cluster file: states TaskManagers, cores, memory and price.",
        ),
    ] = None,
    slots_per_worker: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            min=1,
            help="Slots of the TaskManager of that memory; with --cluster, each slot takes its share.",
        ),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Predict the task slots that a rate needs. The prediction extrapolates from small measurements."""
    check_amounts(memory, rate)
    check_margin(risk, headroom)
    if slots_per_worker is not None and cluster is None:
        raise InvalidInput("--slots-per-worker says how a TaskManager of --cluster is divided; give the cluster, too")
    columns = Columns(memory_column, slots_column, mst_column)
    observations = read_measurements(measurements, columns, rows)
    data = Dataset.of(observations)
    curve = None if twin is None else _twin(twin, measured_on, observations, memory, rate)
    selection = _select(data, model, curve)
    margin = Margin.asked(risk, headroom, selection.model)
    # No answer below what was measured: the fewest measured slots are one for each operator.
    fewest = data.fewest_slots
    slots = slots_interval(selection.model, memory, rate, margin, fewest)
    predicted = selection.model.interval(memory, slots.value)
    sure = float(selection.model.sustains(memory, slots.value, rate)[0])
    alone = _each_law(selection, data)
    by_law = {law: _slots_or_none(single, memory, rate, margin, fewest) for law, single in alone.items()}
    asked = SizingQuestion(rate, margin, (memory,), fewest, DEFAULT_PRECISION, twin=curve)
    helpful = would_help(asked, data) if model is ModelChoice.AUTO else None
    resources = None if cluster is None else _resources(cluster, slots, memory, slots_per_worker)
    remarks = [remark for remark in (why_wide(selection.model, memory, slots.value), _outside(data, memory)) if remark]
    remarks += [] if helpful is None else [helpful.text]
    if as_json:
        print_json(
            {
                "task_slots": slots.value,
                "interval": {"low": slots.low, "high": slots.high, "probability": slots.probability},
                "model": selection.model.name,
                "weights": selection.model.weights,
                "loocv": {law: candidate.loocv_rmse for law, candidate in selection.candidates.items()},
                "loocv_rmse": selection.loocv_rmse,
                "memory_mb": memory,
                "rate": rate,
                "risk": margin.risk,
                "headroom": margin.headroom,
                "sustains": sure,
                "predicted_mst": predicted.model_dump(),
                "task_slots_by_model": by_law,
                "reason": selection.reason,
                "remarks": remarks,
                "would_help": None if helpful is None else helpful.model_dump(),
                **({} if resources is None else {"resources": resources.model_dump(mode="json")}),
            }
        )
        return
    console.print(
        f"[bold]{slots.value} task slots[/bold] for {amount(rate)} records/s with {memory:,.0f} MiB per TaskManager"
    )
    planned = f"{margin.certainty:.0%} sure" if margin.risk is not None else f"planned for {margin.factor:g} x the rate"
    console.print(f"  {planned}; {_range(slots)}", soft_wrap=True)
    console.print(
        f"  predicted MST {amount(predicted.value)} records/s, with {predicted.probability:.0%} probability "
        f"{amount(predicted.low)} to {amount(predicted.high)}",
        soft_wrap=True,
    )
    console.print(f"  {selection.reason}", soft_wrap=True)
    others = (f"{law} {count or 'never'}" for law, count in by_law.items())
    console.print(f"  each law alone: {', '.join(others)}", soft_wrap=True)
    if resources is not None:
        console.print(*(f"  {line}" for line in resources_in_words(resources)), sep="\n", soft_wrap=True)
        console.print(*alternatives_view(resources))
    for remark in remarks:
        progress_console.print(f"note: {remark}", soft_wrap=True)


def _select(data: Dataset, model: ModelChoice, twin: TwinCurve | None = None) -> Selection:
    return select(data, forced=None if model is ModelChoice.AUTO else model.value, twin=twin)


def _twin(job: str, cluster: str, observations: tuple[Observation, ...], memory_mb: float, rate: float) -> TwinCurve:
    from pipelines.inputs.catalogue import load_cluster, load_job  # With the simulator, slow to import.
    from pipelines.twin.from_job import twin_of_job

    worker = load_cluster(cluster).workers[0]
    return twin_of_job(load_job(job), worker, observations, memory_mb, rate, progress_console.print)


def _resources(cluster: str, slots: SlotsInterval, memory_mb: float, slots_per_worker: int | None) -> PlanResources:
    from models.planning.workers.planned import resources_for  # imports placement, which other answers do without

    return resources_for(load_cluster_or_offer(cluster), slots, memory_mb, slots_per_worker)


def _coefficients(regression: Regression) -> dict[str, float]:
    """Slopes of the transformed features, and the intercept."""
    return regression.model_dump(include={"memory", "slots", "intercept"})


def _each_law(selection: Selection, data: Dataset) -> dict[str, CapacityModel]:
    """The laws of the model, each by itself; where a regression was asked for, all three of StreamBed's."""
    if selection.model.regression is None:
        return selection.model.alone
    return {law: CapacityModel.of(fit_regression(law, data)) for law in REGRESSIONS}


def _slots_or_none(model: CapacityModel, memory_mb: float, rate: float, margin: Margin, fewest: int) -> int | None:
    """Task slots by one law; None where it never reaches the rate."""
    try:
        return task_slots_for(model, memory_mb, rate, margin, fewest)
    except Infeasible:
        return None


def _range(slots: SlotsInterval) -> str:
    if slots.high is None:
        return (
            f"needed with {slots.probability:.0%} probability: {slots.low} or more, the measurements set no upper limit"
        )
    return f"needed with {slots.probability:.0%} probability: {slots.low} to {slots.high}"


def _outside(data: Dataset, memory_mb: float) -> str | None:
    """A remark where the memory asked for lies outside of what was measured."""
    low, high = float(np.min(data.memory_mb)), float(np.max(data.memory_mb))
    if low <= memory_mb <= high:
        return None
    if low == high:
        return f"all measurements have {low:,.0f} MiB per TaskManager, so the effect of memory is not known"
    return f"{memory_mb:,.0f} MiB lies outside of the measured {low:,.0f} to {high:,.0f} MiB per TaskManager"


def _print_candidates(selection: Selection, observations: int) -> None:
    console.print(f"{observations} observations; LOOCV is the leave-one-out RMSE in records/s")
    weights = selection.model.weights
    rows = table("law", "weight", "LOOCV", "log density", text=("law",))
    for law, candidate in sorted(selection.candidates.items(), key=lambda item: -weights.get(item[0], 0.0)):
        share = f"{weights[law]:.1%}" if law in weights else "-"
        rows.add_row(law, share, amount(candidate.loocv_rmse), f"{candidate.log_density:.1f}")
    console.print(rows)
    console.print(selection.reason, soft_wrap=True)


def _print_regressions(regressions: dict[str, Regression], errors: dict[str, float]) -> None:
    console.print("StreamBed's regressions, for --model")
    rows = table("law", "memory", "slots", "intercept", "LOOCV", text=("law",))
    for law, regression in regressions.items():
        numbers = (regression.memory, regression.slots, regression.intercept)
        rows.add_row(law, *(f"{n:.4g}" for n in numbers), amount(errors[law]))
    console.print(rows)
