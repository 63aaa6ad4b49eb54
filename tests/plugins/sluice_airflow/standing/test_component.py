"""A component that ends or hangs is started again; its children end with it."""

import sys
import time
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from sluice_airflow.standing import component
from sluice_airflow.standing.component import HUNG_S, LONGEST_PAUSE_S, PAUSE_S, Component
from sluice_airflow.standing.supervisor import healthy_components

FOR_EVER = "import time; time.sleep(600)"
WITH_A_CHILD = f"""
import os, subprocess, sys
child = subprocess.Popen([sys.executable, "-c", {FOR_EVER!r}], process_group=0)
open(sys.argv[1], "w").write(str(child.pid))
child.wait()
"""


class Said(list[str]):
    """What was printed."""

    def __call__(self, name: str, line: str) -> None:
        assert name == "scheduler"
        if not line.startswith("started as process "):
            self.append(line)


@pytest.fixture
def said() -> Said:
    return Said()


def _component(said: Said, script: str, *arguments: str) -> Component:
    return Component("scheduler", [sys.executable, "-c", script, *arguments], {}, said)


def _wait_for_end(supervised: Component, now_s: float) -> None:
    def ended() -> bool:
        supervised.supervise(now_s)
        return supervised.pid is None

    _wait_for(ended)


def _wait_for(condition: Callable[[], object]) -> None:
    deadline = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_a_process_that_ends_is_started_again_after_pauses_that_double(said: Said) -> None:
    ending, now, pauses = _component(said, "print('no database'); raise SystemExit(3)"), 0.0, []
    for _ in range(3):
        ending.supervise(now)
        _wait_for_end(ending, now)
        ended = now
        while ending.pid is None:
            now += 0.5
            ending.supervise(now)
        pauses.append(now - ended)
    assert pauses == [2 * PAUSE_S, 4 * PAUSE_S, 8 * PAUSE_S]
    assert "ended with exit code 3; restart 1 in 2 s" in said
    _wait_for(lambda: said.count("no database") >= 3)
    ending.stop()


def test_a_process_that_ran_for_long_is_started_again_soon(said: Said) -> None:
    running = _component(said, FOR_EVER)
    running.supervise(0.0)
    assert running.pid is not None
    psutil.Process(running.pid).kill()
    _wait_for_end(running, LONGEST_PAUSE_S + 1)
    running.supervise(LONGEST_PAUSE_S + 1 + PAUSE_S)
    assert running.pid is not None
    running.stop()


def test_a_process_without_a_heartbeat_is_stopped_and_started_again(said: Said) -> None:
    hanging = _component(said, FOR_EVER)
    hanging.supervise(0.0)
    hanging.beat(True, 10.0)
    hanging.beat(False, 20.0)
    hanging.beat(False, 30.0)
    hanging.supervise(10.0 + HUNG_S)
    assert hanging.restarts == 0
    hanging.supervise(11.0 + HUNG_S)
    assert (hanging.restarts, hanging.pid) == (1, None)
    assert said[:3] == ["healthy", "unhealthy: no heartbeat", f"no heartbeat for {HUNG_S:g} s"]


def test_where_airflow_cannot_be_asked_nothing_is_stopped(said: Said) -> None:
    running = _component(said, FOR_EVER)
    running.supervise(0.0)
    for now in range(0, int(3 * HUNG_S), 60):
        running.beat(None, float(now))
        running.supervise(float(now))
    assert (running.restarts, said) == (0, [])
    running.stop()


def test_children_in_groups_of_their_own_end_with_the_process(
    said: Said, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(component, "STOP_S", 1.0)
    place = tmp_path / "pid"
    parent = _component(said, WITH_A_CHILD, str(place))
    parent.supervise(0.0)
    _wait_for(lambda: place.exists() and place.read_text())
    child = psutil.Process(int(place.read_text()))
    parent.stop()
    _wait_for(lambda: not child.is_running() or child.status() == psutil.STATUS_ZOMBIE)


def test_airflows_answer_is_read_by_component() -> None:
    answer = {
        "metadatabase": {"status": "healthy"},
        "scheduler": {"status": "healthy", "latest_scheduler_heartbeat": "2026-01-01T00:00:00Z"},
        "triggerer": {"status": None, "latest_triggerer_heartbeat": None},
        "dag_processor": {"status": "unhealthy", "latest_dag_processor_heartbeat": None},
    }
    assert healthy_components(answer) == {"api-server", "scheduler"}
