"""What a person decides from: the description of a model version, short, in Markdown."""

from models.wording import amount
from pipelines.registry.models import APPROVED_BY_RULE, PENDING, REJECTED
from pipelines.registry.review.pages import run_link
from pipelines.registry.review.record import ReviewRecord, Score, SlotChange
from pipelines.registry.review.subject import ReviewSubject
from pipelines.registry.tracking import Tracking

_PHI = {"linear": "{}", "log": "log(1 + {})", "sqrt": "sqrt({})"}


def describe(tracking: Tracking, subject: ReviewSubject, record: ReviewRecord, experiment_id: str) -> str:
    """The verdict or the question, the figures, what approving would change, and the way to the plots."""
    parts = [_opening(record), _table(record), _consequence(record.slots), _model(subject)]
    if record.mlflow_run_id is not None:
        link = run_link(tracking, experiment_id, record.mlflow_run_id)
        parts.append(f"[Predictions for each unseen observation, and plots]({link}).")
    return "\n\n".join(part for part in parts if part)


def _opening(record: ReviewRecord) -> str:
    name = f"{record.job}@{record.challenger.uri.rpartition('/')[2]}"
    if record.verdict == PENDING:
        keeps = "nothing is planned" if record.champion_uri is None else f"plans keep to {record.champion_uri}"
        return (
            f"**Waits for a decision**: {record.reason}. Until then {keeps}. Decide in Airflow's required actions, or with "
            f"`sluice models approve {name} --reason WHY` or `sluice models reject {name} --reason WHY`."
        )
    verdict = {APPROVED_BY_RULE: "Approved by rule", REJECTED: "Rejected by rule"}[record.verdict]
    return f"**{verdict}**: {record.reason}. The rule: {record.rule}."


def _table(record: ReviewRecord) -> str:
    columns = [("challenger", record.challenger), *([] if record.champion is None else [("champion", record.champion)])]
    rows = [
        ("model", *(score.uri for _, score in columns)),
        ("law", *(score.model for _, score in columns)),
        (_held_out_name(record), *(_rmse(score) for _, score in columns)),
    ]
    if (slots := record.slots) is not None:
        needed = [slots.challenger, slots.champion][: len(columns)]
        rows.append((f"task slots for {_rate(slots)}", *("never enough" if n is None else f"{n:,}" for n in needed)))
    head = ["", *(role for role, _ in columns)]
    return "\n".join(["| " + " | ".join(row) + " |" for row in (head, ["---"] * len(head), *rows)])


def _held_out_name(record: ReviewRecord) -> str:
    held_out = record.held_out
    if held_out is None:
        return "RMSE on unseen observations, records/s"
    return (
        f"RMSE on {held_out.observations} unseen observations of {held_out.min_task_slots} to {held_out.max_task_slots} "
        "slots, records/s"
    )


def _rmse(score: Score) -> str:
    if score.rmse is None:
        return "not compared"
    return f"{amount(score.rmse)} (median error {score.median_error:.0%}, {score.missed} outside of their intervals)"


def _rate(slots: SlotChange) -> str:
    return f"{slots.margin.of(slots.rate)} at {slots.memory_mb:,.0f} MiB"


def _consequence(slots: SlotChange | None) -> str:
    if slots is None or slots.share is None:
        return ""
    if slots.challenger == slots.champion:
        return f"What it changes: nothing in the number of task slots for {_rate(slots)}."
    return (
        f"What it changes: a plan for {_rate(slots)} asks for {slots.challenger:,} task slots with the challenger, and for "
        f"{slots.champion:,} with the champion ({slots.share:+.1%})."
    )


def _model(subject: ReviewSubject) -> str:
    selection, data, regression = subject.selection, subject.present, subject.capacity.regression
    law = "Growth laws by weight: " + ", ".join(
        f"{name} {weight:.0%}" for name, weight in sorted(selection.weights.items(), key=lambda item: -item[1])
    )
    if regression is not None:
        phi = _PHI[regression.law]
        law = (
            f"MST = {regression.memory:.6g} {phi.format('memory_mb')} + {regression.slots:.6g} {phi.format('task_slots')} + "
            f"{regression.intercept:.6g} records/s"
        )
    errors = ", ".join(f"{name} {error:,.0f}" for name, error in selection.loocv.items())
    return (
        f"{law}; fitted on {selection.observations} observations of {data.task_slots.min():.0f} to "
        f"{data.task_slots.max():.0f} task slots and {data.memory_mb.min():,.0f} to {data.memory_mb.max():,.0f} MiB "
        f"(run {selection.run}). {selection.reason} Leave-one-out RMSE: {amount(selection.loocv_rmse)} records/s, of each law "
        f"{errors}."
    )
