"""Formatting of numbers in messages for people, and the order of names."""

import re


def amount(value: float) -> str:
    """A quantity: whole with thousands separators from 100 on, three digits below."""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value + 0.0:.3g}"  # + 0.0: never "-0"


def tasks(count: int) -> str:
    """A number of tasks, such as "1 task"."""
    return "1 task" if count == 1 else f"{count} tasks"


def natural_order(name: str) -> list[tuple[int, str]]:
    """Sort key under which numbers within names count as numbers: q2 before q11."""
    return [(int(part), "") if part.isdigit() else (-1, part) for part in re.split(r"(\d+)", name) if part]
