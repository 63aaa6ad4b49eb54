"""What a process that runs a stage stores while it runs, and for what it stops; by a clock that the tests set."""

from pathlib import Path

import pytest

from pipelines.detached.attempts import Attempt, Attempts, Outcome
from pipelines.detached.attending import CLOSE_S, UNFOLLOWED_S, Attendant

LIMIT_S = 6 * 3600.0


class Watched:
    """An attendant with a clock, and what it did to its process."""

    def __init__(self, folder: Path) -> None:
        self.attempt: Attempt = Attempts(f"file://{folder}/runs/q1/r/request.json", "profile").of(1)
        self.attempt.begin(LIMIT_S)
        self.now_s = 0.0
        self.done: list[str] = []
        self.attendant = Attendant(
            self.attempt,
            LIMIT_S,
            clock=lambda: self.now_s,
            terminate=lambda: self.done.append("terminated"),
            kill=lambda: self.done.append("killed"),
        )

    def look_at(self, now_s: float) -> Outcome | None:
        """What it stops for, if it looks then."""
        self.now_s = now_s
        self.attendant.look()
        return self.attendant.stopping


@pytest.fixture
def watched(tmp_path: Path) -> Watched:
    return Watched(tmp_path)


def _beat(attempt: Attempt) -> str:
    assert attempt.state is not None
    return attempt.state.beat


def test_the_state_is_renewed_every_five_seconds_and_for_each_new_line(watched: Watched) -> None:
    assert watched.attempt.state is None
    watched.look_at(0.0)
    first = _beat(watched.attempt)
    watched.look_at(4.9)
    assert _beat(watched.attempt) == first
    watched.look_at(5.0)
    second = _beat(watched.attempt)
    assert second != first
    watched.attendant.say("profile: 1,000 records/s")
    watched.look_at(5.1)
    assert _beat(watched.attempt) != second
    assert watched.attempt.state is not None and watched.attempt.state.lines == 1
    assert watched.attempt.progress.lines == ("profile: 1,000 records/s",)


def test_lines_that_were_said_last_are_stored_at_the_end(watched: Watched) -> None:
    watched.look_at(0.0)
    watched.attendant.say("done")
    watched.attendant.close()
    assert watched.attempt.progress.lines == ("done",)
    assert watched.done == []


def test_it_stops_on_request(watched: Watched) -> None:
    assert watched.look_at(1.0) is None
    watched.attempt.stop()
    assert watched.look_at(2.0) == Outcome(kind="stopped", text="it was stopped on request")
    assert watched.look_at(3.0) is not None and watched.done == ["terminated"], "once"


def test_it_stops_when_its_time_is_up(watched: Watched) -> None:
    for second in (0.0, LIMIT_S / 2, LIMIT_S):
        watched.attempt.follow()
        assert watched.look_at(second) is None
    stopped = watched.look_at(LIMIT_S + 1)
    assert stopped == Outcome(kind="timed-out", text="it was stopped after 6 h, its time limit")


def test_it_stops_when_nothing_has_followed_it_for_half_an_hour(watched: Watched) -> None:
    watched.attempt.follow()
    assert watched.look_at(10.0) is None
    assert watched.look_at(10.0 + UNFOLLOWED_S) is None
    watched.attempt.follow()
    assert watched.look_at(11.0 + UNFOLLOWED_S) is None
    stopped = watched.look_at(12.0 + 2 * UNFOLLOWED_S)
    assert stopped == Outcome(kind="stopped", text="nothing has followed it for 0.5 h")


def test_it_stops_if_a_follower_has_given_it_up(watched: Watched) -> None:
    lost = Outcome(kind="lost", text="no sign of life")
    watched.attempt.end(lost)
    stopped = watched.look_at(1.0)
    assert stopped is not None and stopped.kind == "lost"
    assert watched.attempt.end(stopped) == lost, "what is on record stays"


def test_what_does_not_close_in_time_is_killed_with_its_outcome_on_record(watched: Watched) -> None:
    watched.attempt.stop()
    stopped = watched.look_at(1.0)
    watched.look_at(1.0 + CLOSE_S)
    assert (watched.done, watched.attempt.outcome) == (["terminated"], None)
    watched.look_at(1.1 + CLOSE_S)
    assert (watched.done, watched.attempt.outcome) == (["terminated", "killed"], stopped)
