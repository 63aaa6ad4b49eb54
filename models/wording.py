"""Formatting of numbers in reasons and messages for people."""


def amount(value: float) -> str:
    """A quantity: whole with thousands separators from 100 on, three digits below."""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def tasks(count: int) -> str:
    """A number of tasks, such as "1 task"."""
    return "1 task" if count == 1 else f"{count} tasks"
