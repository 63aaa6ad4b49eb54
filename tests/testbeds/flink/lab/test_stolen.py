"""Measurement windows of which a hypervisor stole CPU time, on a fake clock."""

from collections.abc import Iterator
from types import SimpleNamespace

import psutil
import pytest

from testbeds.flink.lab import stolen
from testbeds.flink.lab.stolen import STEP_S, Patience, StolenTime, least_stolen
from testbeds.flink.measuring.meter import NoNews

NONE = Patience(0.0)
"""No time to wait."""


class Processors:
    """Each window is (CPU seconds used, CPU seconds stolen)."""

    def __init__(self, *windows: tuple[float, float]) -> None:
        self._windows: Iterator[tuple[float, float]] = iter(windows)
        self._used = self._stolen = 100.0
        self.measured = 0

    def times(self) -> SimpleNamespace:
        return SimpleNamespace(user=0.75 * self._used, system=0.25 * self._used, idle=7.0, steal=self._stolen)

    def measure(self) -> int:
        self.pass_by()
        self.measured += 1
        return self.measured

    def pass_by(self, _: float = STEP_S) -> None:
        used, missed = next(self._windows)
        self._used, self._stolen = self._used + used, self._stolen + missed


def processors(monkeypatch: pytest.MonkeyPatch, *windows: tuple[float, float]) -> Processors:
    made = Processors(*windows)
    monkeypatch.setattr(psutil, "cpu_times", made.times)
    monkeypatch.setattr(stolen, "time", SimpleNamespace(sleep=made.pass_by))
    return made


def test_the_share_is_of_what_was_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = processors(monkeypatch, (3.0, 1.0))
    since = StolenTime()
    assert since.share() == 0
    machine.measure()
    assert since.share() == pytest.approx(0.25)
    times = SimpleNamespace(user=1.0, nice=0.0, system=1.0, idle=1.0, steal=0.0)
    monkeypatch.setattr(psutil, "cpu_times", lambda: times)
    since = StolenTime()
    times.nice, times.steal = 6.0, 2.0
    assert since.share() == pytest.approx(0.25), "time of niced processes counts as used"
    monkeypatch.setattr(psutil, "cpu_times", lambda: SimpleNamespace(user=1.0, system=1.0, idle=1.0))
    elsewhere = StolenTime()
    monkeypatch.setattr(psutil, "cpu_times", lambda: SimpleNamespace(user=5.0, system=1.0, idle=1.0))
    assert elsewhere.share() == 0, "a system without the counter"


def test_a_window_of_which_much_was_stolen_is_measured_again(monkeypatch: pytest.MonkeyPatch) -> None:
    messages: list[str] = []
    assert least_stolen(processors(monkeypatch, (19.0, 1.0)).measure, NONE, messages.append) == 1
    assert least_stolen(processors(monkeypatch, (9.0, 1.0), (9.8, 0.2)).measure, NONE, messages.append) == 2
    assert messages == []


def test_it_waits_until_little_is_stolen_and_then_measures_again(monkeypatch: pytest.MonkeyPatch) -> None:
    messages: list[str] = []
    patience = Patience(4 * STEP_S)
    machine = processors(monkeypatch, (5.0, 5.0), (5.0, 5.0), (9.0, 1.0), (9.9, 0.1), (9.8, 0.2))
    assert least_stolen(machine.measure, patience, messages.append) == 2
    assert [line.endswith("waiting for that to end") for line in messages] == [True]
    # One step of four is left: of the next window more is stolen than while it is waited for, and then there is none.
    machine = processors(monkeypatch, (5.0, 5.0), (5.0, 5.0), (6.0, 4.0))
    assert least_stolen(machine.measure, patience, messages.append) == 2
    machine = processors(monkeypatch, (5.0, 5.0), (6.0, 4.0))
    assert least_stolen(machine.measure, patience, messages.append) == 2


@pytest.mark.parametrize(("windows", "better"), [(((9.0, 1.0), (6.0, 4.0)), 1), (((5.0, 5.0), (9.0, 1.0)), 2)])
def test_the_better_of_two_is_taken_and_what_it_missed_is_reported(
    monkeypatch: pytest.MonkeyPatch, windows: tuple[tuple[float, float], ...], better: int
) -> None:
    messages: list[str] = []
    machine = processors(monkeypatch, *windows)
    assert least_stolen(machine.measure, NONE, messages.append) == better and machine.measured == 2
    assert len(messages) == 1 and "gave 10% of the processor time or more to other machines" in messages[0]


def test_a_window_of_which_much_was_stolen_is_better_than_none(monkeypatch: pytest.MonkeyPatch) -> None:
    def silent_again() -> int:
        if machine.measure() > 1:
            raise NoNews("nothing for 6 s")
        return machine.measured

    messages: list[str] = []
    machine = processors(monkeypatch, (5.0, 5.0), (1.0, 0.0))
    assert least_stolen(silent_again, NONE, messages.append) == 1
    assert machine.measured == 2 and "gave 50% of" in messages[0]


def test_a_window_that_flink_did_not_report_on_is_measured_again_once(monkeypatch: pytest.MonkeyPatch) -> None:
    def from_window(first: int) -> int:
        if machine.measure() < first:
            raise NoNews("nothing for 6 s")
        return machine.measured

    machine = processors(monkeypatch, *[(1.0, 0.0)] * 2)
    assert least_stolen(lambda: from_window(2), NONE, pytest.fail) == 2
    machine = processors(monkeypatch, *[(1.0, 0.0)] * 3)
    with pytest.raises(NoNews, match="nothing for 6 s"):
        least_stolen(lambda: from_window(3), NONE, pytest.fail)
    assert machine.measured == 2
