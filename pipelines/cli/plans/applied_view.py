"""How `sluice plans apply` prints an outcome, and progress."""

from rich.text import Text

from models.plan.content import Plan
from models.wording import amount
from pipelines.apply.applied import Applied, Effect
from pipelines.cli.output import console, progress_console
from pipelines.terminal.tables import table


def say(what: str) -> None:
    """A step, on standard error."""
    progress_console.print(what, markup=False, soft_wrap=True)


def print_applied(plan: Plan, applied: Applied) -> None:
    """The outcome, the tasks, and the effect beside the predictions."""
    style = "bold" if applied.outcome in ("applied", "unchanged") else "bold red"
    console.print(Text(f"{plan.job}@{plan.version} {applied.outcome}: {applied.reason}", style=style))
    if applied.flinks_rescale_s is not None:
        console.print(f"by its own history, Flink took {applied.flinks_rescale_s:.1f} s of that")
    shown = table("operators", "vertex", "before", "plan", wrap=("operators", "vertex"))
    for change in applied.changes:
        shown.add_row(Text(", ".join(change.operators)), Text(change.name), str(change.before), str(change.after))
    console.print(shown)
    if applied.effect is not None:
        _print_effect(applied.effect)
    print_advice(applied.advice)


def _print_effect(effect: Effect) -> None:
    rate = "an unknown rate" if effect.rate is None else f"{amount(effect.rate)} records/s"
    console.print(f"observed for {effect.window_s:g} s at {rate}; the plan is for {amount(effect.target_rate)}")
    shown = table("operators", "records/s in", "predicted", "busy", "predicted", "backpressured", wrap=("operators",))
    for v in effect.vertices:
        figures = (*map(_rate, (v.records_in_per_s, v.expected_records_in_per_s)),)
        shares = (*map(_share, (v.busyness, v.expected_busyness, v.backpressure)),)
        shown.add_row(Text(", ".join(v.operators)), *figures, *shares)
    console.print(shown)


def print_advice(advice: tuple[str, ...]) -> None:
    """Parts of the plan that were not done."""
    for one in advice:
        console.print(Text(f"not done: {one}"), soft_wrap=True)


def _rate(value: float | None) -> str:
    return "-" if value is None else amount(value)


def _share(value: float | None) -> str:
    return "-" if value is None else f"{value:.0%}"
