"""Runs for one job take turns: their numbers, the run to wait for, and the pool that measurements run in."""

import asyncio
import threading
from pathlib import Path

import pytest

from pipelines.store.workspace import Workspace
from sluice_airflow import turns
from sluice_airflow.pools import MEASURING, REPLANNING, PoolMaker
from sluice_airflow.rows import draw, first_before
from sluice_airflow.turns import TurnTrigger


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    return Workspace(tmp_path)


def test_runs_of_a_job_continue_in_the_order_of_their_numbers(workspace: Workspace) -> None:
    numbers = [draw(workspace, "q5", run) for run in ("a", "b", "c")]
    assert numbers == [1, 2, 3]
    assert draw(workspace, "q1", "d") == 1, "other jobs have rows of their own"
    active = {"a", "b", "c", "d"}
    assert [first_before(workspace, "q5", n, active.__contains__) for n in numbers] == [None, "a", "a"]
    active.remove("a")  # it has ended, or was deleted
    assert [first_before(workspace, "q5", n, active.__contains__) for n in (2, 3)] == [None, "b"]
    active.remove("b")
    assert first_before(workspace, "q5", 3, active.__contains__) is None
    assert workspace.list("turns/q5") == ["turns/q5/000003.json"], "nothing is left of runs that have ended"


def test_a_retried_task_keeps_the_number_of_its_run(workspace: Workspace) -> None:
    assert (draw(workspace, "q5", "a"), draw(workspace, "q5", "a")) == (1, 1)


def test_a_restarted_run_waits_for_the_run_that_overtook_it(workspace: Workspace) -> None:
    draw(workspace, "q5", "failed")
    assert first_before(workspace, "q5", draw(workspace, "q5", "next"), {"next"}.__contains__) is None
    again = draw(workspace, "q5", "failed")
    assert again == 3
    assert first_before(workspace, "q5", again, {"failed", "next"}.__contains__) == "next"
    assert first_before(workspace, "q5", 2, {"failed", "next"}.__contains__) is None, "and that one not for it"


def test_runs_that_draw_at_once_get_different_numbers(workspace: Workspace) -> None:
    drawn: dict[str, int] = {}
    begin = threading.Barrier(8)

    def one(name: str) -> None:
        begin.wait()
        drawn[name] = draw(workspace, "q5", name)

    threads = [threading.Thread(target=one, args=(f"run-{n}",)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(drawn.values()) == list(range(1, 9))


def test_the_trigger_fires_when_the_earlier_run_has_ended(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    active, looks = {"first", "second"}, 0

    def asks_airflow(run: str) -> bool:
        nonlocal looks
        looks += 1
        if looks == 3:
            active.remove("first")
        return run in active

    monkeypatch.setattr(turns, "_is_active", lambda dag: asks_airflow)
    draw(workspace, "q5", "first")
    number = draw(workspace, "q5", "second")
    trigger = TurnTrigger("capacity_plan", workspace.uri("runs/q5/r/request.json"), number, look_every_s=0.01)
    name, given = trigger.serialize()
    assert name == f"{TurnTrigger.__module__}.{TurnTrigger.__qualname__}"

    async def fired() -> int:
        return len([event async for event in TurnTrigger(**given).run()])

    assert asyncio.run(asyncio.wait_for(fired(), 30)) == 1
    assert looks == 3


def test_the_pools_are_made_when_airflow_starts_and_keep_changes(airflow_home: Path) -> None:
    from airflow.jobs.job import Job
    from airflow.models.pool import Pool
    from airflow.utils.session import create_session

    def slots() -> list[tuple[int, bool] | None]:
        """Of measurements and replans; whether deferred tasks count, since their testbed is in use."""
        with create_session() as session:
            pools = [Pool.get_pool(name, session=session) for name in (MEASURING, REPLANNING)]
            return [None if pool is None else (int(pool.slots), bool(pool.include_deferred)) for pool in pools]

    for name, made in zip((MEASURING, REPLANNING), slots(), strict=True):
        if made is not None:
            Pool.delete_pool(name)
    PoolMaker().on_starting(component=object())
    assert slots() == [None, None], "tasks have no database"
    Job()  # scheduler, triggerer and DAG processor start with one, which calls the plugin's listener
    assert slots() == [(1, True), (2, False)]
    Pool.create_or_update_pool(MEASURING, 3, "two more testbeds", include_deferred=False)
    Pool.create_or_update_pool(REPLANNING, 8, "many workers", include_deferred=False)
    Job()
    assert slots() == [(3, True), (8, False)]
