"""A follower passes on each line once, and gives up a process that shows no sign of life."""

from pathlib import Path

import pytest

from pipelines.detached.attempts import FOLLOW_EVERY_S, LOST_S, Attempt, Attempts, Outcome
from pipelines.detached.following import AttemptFollower

DONE = Outcome(kind="done", text="file:///w/runs/q1/r/profile.json")


class Clock:
    def __init__(self) -> None:
        self.now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


@pytest.fixture
def attempt(tmp_path: Path) -> Attempt:
    made = Attempts(f"file://{tmp_path}/runs/q1/r/request.json", "profile").of(1)
    made.begin(60.0)
    return made


@pytest.fixture
def clock() -> Clock:
    return Clock()


def _said(attempt: Attempt, *lines: str) -> None:
    attempt.say(lines)
    attempt.beat(len(lines))


def test_each_line_comes_once_and_the_last_ones_with_the_outcome(attempt: Attempt, clock: Clock) -> None:
    follower = AttemptFollower(attempt, clock)
    assert follower.look().lines == ()
    _said(attempt, "a", "b")
    assert (follower.look().lines, follower.look().lines) == (("a", "b"), ())
    _said(attempt, "a", "b", "c")
    attempt.end(DONE)
    last = follower.look()
    assert (last.lines, last.outcome) == (("c",), DONE)


def test_another_follower_gets_all_lines(attempt: Attempt, clock: Clock) -> None:
    _said(attempt, "a", "b")
    AttemptFollower(attempt, clock).look()
    assert AttemptFollower(attempt, clock).look().lines == ("a", "b")


def test_a_process_that_beats_is_alive(attempt: Attempt, clock: Clock) -> None:
    follower = AttemptFollower(attempt, clock)
    for _ in range(3):
        attempt.beat(0)
        assert follower.look().outcome is None
        clock.now_s += 2 * LOST_S


def test_a_process_without_a_beat_for_a_minute_is_lost(attempt: Attempt, clock: Clock) -> None:
    follower = AttemptFollower(attempt, clock)
    attempt.beat(0)
    follower.look()
    clock.now_s = LOST_S
    assert follower.look().outcome is None
    clock.now_s = LOST_S + 1
    lost = follower.look().outcome
    assert lost is not None and lost.kind == "lost" and "has given no sign of life for 60 s" in lost.text
    assert attempt.outcome == lost


def test_a_process_that_never_started_is_lost(attempt: Attempt, clock: Clock) -> None:
    follower = AttemptFollower(attempt, clock)
    clock.now_s = LOST_S + 1
    lost = follower.look().outcome
    assert lost is not None and "its process has not started for 60 s" in lost.text


def test_an_outcome_that_came_at_the_last_moment_counts(attempt: Attempt, clock: Clock) -> None:
    follower = AttemptFollower(attempt, clock)
    clock.now_s = LOST_S + 1
    attempt.end(DONE)
    assert follower.look().outcome == DONE


def test_the_process_sees_every_minute_that_it_is_followed(attempt: Attempt, clock: Clock) -> None:
    follower = AttemptFollower(attempt, clock)
    follower.look()
    first = attempt.followed
    clock.now_s = FOLLOW_EVERY_S - 1
    follower.look()
    assert first is not None and attempt.followed == first
    clock.now_s = FOLLOW_EVERY_S
    follower.look()
    assert attempt.followed != first
