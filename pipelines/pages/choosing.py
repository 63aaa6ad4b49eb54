"""The jobs that a person on call looks for: by a part of the name, and by their state."""

from collections.abc import Collection, Iterable
from typing import Final, Literal

from pipelines.pages.overview import JobRow

JobState = Literal["any", "approval", "drifted", "unchecked", "unfollowed", "pinned", "damaged"]

STATES: Final[dict[JobState, str]] = {
    "any": "any",
    "approval": "approval pending",
    "drifted": "drifted",
    "unchecked": "not checked yet",
    "unfollowed": "rate not followed",
    "pinned": "pinned",
    "damaged": "damaged files",
}
"""In words, in the order in which they are offered."""


def chosen(rows: Iterable[JobRow], search: str, state: JobState, asked: Collection[str]) -> tuple[JobRow, ...]:
    """The jobs in a state whose names hold all the words of `search`, whatever their case.

    Args:
        asked: jobs that a question to a person is about.
    """
    words = search.lower().split()
    return tuple(
        row
        for row in rows
        if all(word in row.job.lower() for word in words) and (state == "any" or state in _states(row, asked))
    )


def _states(row: JobRow, asked: Collection[str]) -> set[JobState]:
    facts: dict[JobState, bool] = {
        "approval": row.job in asked,
        "drifted": row.drift is not None and row.drift.drifted,
        "unchecked": row.drift is None,
        "unfollowed": row.unfollowed is not None,
        "pinned": row.pin is not None,
        "damaged": bool(row.faults),
    }
    return {state for state, holds in facts.items() if holds}
