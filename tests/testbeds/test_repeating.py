"""Interrupted measurements are repeated, a limited number of times."""

import pytest

from models.errors import Infeasible, SluiceError
from testbeds.protocol import Configuration, Disturbed, Run
from testbeds.repeating import measured
from testbeds.simulator import Simulator
from testbeds.suite import small_job

CONFIGURATION = Configuration({"source": 1, "map": 1, "count": 1, "sink": 1}, 65536.0)


class Breaking:
    """Fails the first few measurements."""

    def __init__(self, faults: int) -> None:
        self.runs: list[Run] = []
        self._faults = faults

    def __call__(self, run: Run) -> float:
        self.runs.append(run)
        achieved = run.inject(1000.0, 5.0, "observe").achieved_rate
        if len(self.runs) <= self._faults:
            raise Disturbed("a TaskManager is gone")
        return achieved


def measure(breaking, messages=None):
    say = (messages if messages is not None else []).append
    return measured(Simulator(), small_job(), CONFIGURATION, breaking, run="r", seed=1, say=say)


def test_a_complete_measurement_is_not_repeated():
    breaking, messages = Breaking(0), []
    assert measure(breaking, messages) == pytest.approx(1000.0)
    assert len(breaking.runs) == 1 and messages == []


def test_an_interrupted_measurement_is_repeated_in_a_new_run():
    breaking, messages = Breaking(2), []
    assert measure(breaking, messages) == pytest.approx(1000.0)
    assert len(set(map(id, breaking.runs))) == 3
    assert messages == [
        "simulator: a TaskManager is gone; measuring again, 2 times at most",
        "simulator: a TaskManager is gone; measuring again, once at most",
    ]
    for run in breaking.runs:
        with pytest.raises(SluiceError, match="closed run"):
            run.inject(1000.0, 5.0, "observe")


def test_three_faults_are_an_error():
    breaking = Breaking(3)
    with pytest.raises(
        SluiceError, match="was interrupted 3 times, the last time because a TaskManager is gone"
    ) as caught:
        measure(breaking)
    assert not isinstance(caught.value, Disturbed) and len(breaking.runs) == 3


def test_an_infeasible_configuration_is_not_retried():
    def refused(run):
        refused.calls += 1
        raise Infeasible("too many slots")

    refused.calls = 0
    with pytest.raises(Infeasible):
        measured(Simulator(), small_job(), CONFIGURATION, refused, run="r", seed=1, say=print)
    assert refused.calls == 1
