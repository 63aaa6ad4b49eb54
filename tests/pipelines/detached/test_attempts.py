"""Attempts at a stage: who begins one, when the next may begin, and how one ends."""

from pathlib import Path

import pytest

from pipelines.detached.attempts import Attempts, Outcome
from pipelines.detached.starting import joined

DONE = Outcome(kind="done", text="file:///w/runs/q1/r/profile.json")
LOST = Outcome(kind="lost", text="no sign of life")


@pytest.fixture
def attempts(tmp_path: Path) -> Attempts:
    return Attempts(f"file://{tmp_path}/runs/q1/r/request.json", "profile")


def test_one_of_two_begins_an_attempt(attempts: Attempts) -> None:
    assert attempts.newest() is None
    attempts.of(1).begin(60.0)
    with pytest.raises(FileExistsError):
        attempts.of(1).begin(60.0)
    newest = attempts.newest()
    assert newest is not None and (newest.number, newest.record.limit_s) == (1, 60.0)


def test_other_stages_have_attempts_of_their_own(attempts: Attempts, tmp_path: Path) -> None:
    attempts.of(1).begin(60.0)
    assert Attempts(f"file://{tmp_path}/runs/q1/r/request.json", "explore").newest() is None
    assert Attempts(f"file://{tmp_path}/runs/q1/other/request.json", "profile").newest() is None


def test_an_attempt_has_one_outcome(attempts: Attempts) -> None:
    attempt = attempts.of(1)
    attempt.begin(60.0)
    assert (attempt.end(LOST), attempt.end(DONE)) == (LOST, LOST)
    assert attempt.outcome == LOST


def test_an_open_attempt_is_joined_and_a_second_process_is_not_started(attempts: Attempts) -> None:
    started: list[int] = []
    first, second = (joined(attempts, 60.0, lambda one: started.append(one.number)) for _ in range(2))
    assert (first.number, second.number, started) == (1, 1, [1])


def test_the_next_attempt_begins_once_the_newest_has_ended_or_is_to_stop(attempts: Attempts) -> None:
    started: list[int] = []

    def join() -> int:
        return joined(attempts, 60.0, lambda one: started.append(one.number)).number

    join()
    attempts.of(1).stop()
    assert (join(), join()) == (2, 2)
    attempts.of(2).end(LOST)
    assert (join(), started) == (3, [1, 2, 3])


def test_who_comes_second_joins_what_the_first_has_begun_meanwhile(
    attempts: Attempts, monkeypatch: pytest.MonkeyPatch
) -> None:
    newest = Attempts.newest
    looks = 0

    def begun_after_the_look(self: Attempts) -> object:
        nonlocal looks
        looks += 1
        found = newest(self)
        if looks == 1:
            self.of(1).begin(60.0)
        return found

    monkeypatch.setattr(Attempts, "newest", begun_after_the_look)
    assert joined(attempts, 60.0, lambda one: pytest.fail("it runs already")).number == 1
