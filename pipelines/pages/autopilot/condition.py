"""What an autopilot does now, in one word, from its state and its stop switch."""

from dataclasses import dataclass
from datetime import datetime
from typing import Final, Literal

from pipelines.control.files import AutopilotState, StopSwitch

Condition = Literal["acting", "dry run", "rescaling", "held back", "stopped", "ended", "silent"]
"""What an autopilot does now.

acting     it watches, and rescales when its policy recommends it
dry run    it watches, and only records what it would do
rescaling  a rescale is under way
held back  a limit keeps it from acting
stopped    by the stop switch
ended      its process has ended
silent     its process has not written for too long: it was killed, or hangs
"""

SILENT_AFTER_S: Final = 30.0
"""Age of the state from which an autopilot counts as silent, seconds."""
SILENT_ROUNDS: Final = 3.0
"""The same in times between two rounds, where these are longer."""


@dataclass(frozen=True)
class Age:
    """How old what is known of an autopilot is, seconds; None where nothing is known."""

    state_s: float
    decision_s: float | None


def age(state: AutopilotState, now: datetime) -> Age:
    """Clocks that differ make no age negative."""
    decided = None if state.newest is None else (now - state.newest.decided_at).total_seconds()
    return Age(
        state_s=max((now - state.beat_at).total_seconds(), 0.0),
        decision_s=None if decided is None else max(decided, 0.0),
    )


def is_silent(state: AutopilotState, now: datetime) -> bool:
    """Whether its process should have written its state by now."""
    return state.phase != "ended" and age(state, now).state_s > max(SILENT_AFTER_S, SILENT_ROUNDS * state.every_s)


def condition(state: AutopilotState, switch: StopSwitch | None, now: datetime) -> Condition:
    """What is most important first: an autopilot that does not run is neither stopped nor held back."""
    if state.phase == "ended":
        return "ended"
    if is_silent(state, now):
        return "silent"
    if switch is not None:
        return "stopped"
    if state.phase == "acting":
        return "rescaling"
    if state.newest is not None and state.newest.held is not None:
        return "held back"
    return "dry run" if state.dry_run else "acting"
