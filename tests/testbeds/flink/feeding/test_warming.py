"""How long programs run before they are measured."""

import time
from collections.abc import Iterator

import pytest

from flink.source_task import SourceTask
from flink_client.rest.answers import Vertex
from models.errors import SluiceError
from models.job import Job
from testbeds.feeding.control import SourceControl
from testbeds.flink.feeding import warming
from testbeds.flink.submission import Deployed
from testbeds.suite import small_job

DEPLOYED = Deployed("job", {"source": Vertex("v", "source", 1, 1)}, {}, {"source": "events"})
WINDOW_S = 0.2


@pytest.fixture
def control() -> Iterator[SourceControl]:
    with SourceControl() as made:
        yield made


@pytest.fixture
def task(control: SourceControl) -> Iterator[SourceTask]:
    with SourceTask(control, "events", 0, 1) as made:
        yield made


@pytest.fixture
def job() -> Job:
    return small_job()


class Warming:
    """A source task that emits the given numbers of records, one per window, and then the last one."""

    def __init__(self, control: SourceControl, task: SourceTask, *emitted: int) -> None:
        self._control, self._task = control, task
        self._left, self._in_all, self.windows = list(emitted), 0, 0
        self._began = time.monotonic()

    def report(self) -> None:
        """Report the progress, and wait until it was received."""
        self._in_all += self._left.pop(0) if len(self._left) > 1 else self._left[0]
        self._task.reports("1", time.monotonic() - self._began, self._in_all, 0, self._in_all)
        until = time.monotonic() + 10
        while all(r.emitted_in_all != self._in_all for r in self._control.reports("events").values()):
            assert time.monotonic() < until
            time.sleep(0.005)

    def window(self) -> None:
        self.windows += 1
        self.report()


def test_it_runs_until_three_windows_were_no_faster(
    control: SourceControl, task: SourceTask, job: Job, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(warming, "WINDOW_S", WINDOW_S)
    # The first report comes before the first window; then it gets faster, and at last slower.
    source = Warming(control, task, 0, 100, 300, 900, 400)
    source.report()
    most = warming.run_until_steady(control, job, DEPLOYED, source.window)
    assert source.windows == 6
    assert 400 / WINDOW_S < most <= 900 / WINDOW_S


def test_a_failing_job_stops_the_warm_up(
    control: SourceControl, task: SourceTask, job: Job, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(warming, "WINDOW_S", WINDOW_S)

    def ended() -> None:
        raise SluiceError("the Flink process worker-0 ended with code 137")

    Warming(control, task, 0).report()
    with pytest.raises(SluiceError, match="code 137"):
        warming.run_until_steady(control, job, DEPLOYED, ended)


def test_windows_are_let_go_of_before_anything_is_measured(
    control: SourceControl, job: Job, monkeypatch: pytest.MonkeyPatch
) -> None:
    orders, slept = [], []
    monkeypatch.setattr(control, "offer", lambda rates: orders.append(dict(rates)) or "1")
    monkeypatch.setattr(time, "sleep", slept.append)
    warming.warm_up(control, job, DEPLOYED, 10.0)
    assert orders == [{"events": 1e9}, {"events": warming.DRAIN_RATE}] and slept == [10.0, warming.DRAIN_S]
    keyless = tuple(o.model_copy(update={"keys": None}) for o in job.operators)
    warming.warm_up(control, job.model_copy(update={"operators": keyless}), DEPLOYED, 10.0)
    assert slept == [10.0, warming.DRAIN_S, 10.0]
