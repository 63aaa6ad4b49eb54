"""Events of an asset are read once, also those that Airflow starts no run for."""

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from airflow.sdk.exceptions import AirflowSkipException

from pipelines.store.workspace import Workspace
from sluice_airflow.tasks.replanning import newest_of_job, rate_changes
from sluice_airflow.unread import events_of_run, unread

AT = datetime.now(UTC).replace(microsecond=0) - timedelta(minutes=5)


@dataclass
class Sent:
    """An event, sent some seconds after AT."""

    id: int
    extra: Any
    after_s: float = 0.0
    created_dagruns: list[Any] = field(default_factory=list)

    @property
    def timestamp(self) -> datetime:
        return AT + timedelta(seconds=self.after_s)


class Inlet(list[Sent]):
    """The events of the asset, as Airflow gives them to a task."""

    def after(self, since: datetime) -> "Inlet":
        return Inlet(event for event in self if event.timestamp >= since)


@pytest.fixture
def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Workspace:
    monkeypatch.setenv("SLUICE_WORKSPACE", str(tmp_path))
    return Workspace()


def run(name: str, kind: str = "asset_triggered") -> Any:
    return SimpleNamespace(dag_id="replan", run_id=name, run_type=kind, run_after=AT)


def changes_of_run(params: dict[str, Any], started_by: list[Sent], events: Inlet, dag_run: Any) -> list[dict[str, Any]]:
    """As the task `changes` of `replan`."""
    return rate_changes(params, events_of_run(started_by, events, dag_run), dag_run.run_id)


def given_to(dag: str, name: str) -> list[Any]:
    return [SimpleNamespace(dag_id=dag, run_id=name)]


def test_an_event_is_read_by_the_first_run_and_again_by_its_retry(workspace: Workspace) -> None:
    events = [Sent(2, {"job": "b"}, 1.0), Sent(1, {"job": "a"})]
    assert unread(workspace, events, "replan", "one") == [{"job": "a"}, {"job": "b"}]
    assert unread(workspace, events, "replan", "one") == [{"job": "a"}, {"job": "b"}]
    assert unread(workspace, [*events, Sent(3, None, 2.0)], "replan", "two") == [{}]
    assert unread(workspace, events, "apply_plan", "other-dag") == [{"job": "a"}, {"job": "b"}]


def test_what_airflow_gave_to_another_run_of_the_dag_is_left_to_it(workspace: Workspace) -> None:
    events = [
        Sent(1, {"job": "a"}, created_dagruns=given_to("replan", "before")),
        Sent(2, {"job": "b"}, created_dagruns=given_to("replan", "one")),
        Sent(3, {"job": "c"}, created_dagruns=given_to("apply_plan", "x")),
    ]
    assert unread(workspace, events, "replan", "one") == [{"job": "b"}, {"job": "c"}]


def test_an_event_that_waited_for_days_is_read_and_its_mark_is_removed_later(workspace: Workspace) -> None:
    old, new = Sent(1, {"job": "a", "rate": 1.0}, -10 * 86_400.0), Sent(2, {"job": "b", "rate": 2.0})
    assert len(changes_of_run({}, [old], Inlet([old]), run("one"))) == 1
    assert len(workspace.list("events-read/replan")) == 1
    old.created_dagruns = given_to("replan", "one")
    assert len(changes_of_run({}, [new], Inlet([old, new]), run("two"))) == 1
    (left,) = workspace.list("events-read/replan")
    assert left.endswith("-000000002.json")


def test_changes_that_came_at_once_are_planned_for_by_one_run_the_oldest_first(workspace: Workspace) -> None:
    """Airflow starts a run for the first of 50 events; the other 49 are in no run."""
    events = Inlet(Sent(n, {"job": f"job-{n}", "rate": 100.0 + n}, 0.01 * n) for n in range(50))
    events.append(Sent(50, {"job": "job-7", "rate": 1.0}, 0.6))
    changes = changes_of_run({}, events[:1], events, run("one"))
    assert [change["job"] for change in changes] == [f"job-{n}" for n in range(50)], "each once, in its first place"
    assert [change["rate"] for change in changes][6:9] == [106.0, 1.0, 108.0], "the newest rate counts"
    with pytest.raises(AirflowSkipException, match="earlier runs have read"):
        changes_of_run({}, events[1:2], events, run("two"))


def test_a_change_that_comes_while_a_replan_waits_replaces_it_and_is_not_planned_for_again(
    workspace: Workspace,
) -> None:
    events = Inlet([Sent(1, {"job": "a", "rate": 1.0}), Sent(2, {"job": "b", "rate": 2.0}, 1.0)])
    first, second = changes_of_run({}, events[:1], events, run("one"))
    events += [
        Sent(3, {"job": "b", "rate": 3.0}, 2.0),
        Sent(4, {"job": "b"}, 3.0),
        Sent(5, {"job": "c", "rate": 5.0}, 4.0),
    ]
    assert newest_of_job(first, events, run("one")) == first
    assert newest_of_job(second, events, run("one")) == {"job": "b", "rate": 3.0}
    assert newest_of_job(second, events, run("one")) == {"job": "b", "rate": 3.0}, "as its retry"
    assert changes_of_run({}, events[2:3], events, run("two")) == [{"job": "c", "rate": 5.0}]


def test_an_event_that_is_no_change_does_not_keep_others_waiting(workspace: Workspace) -> None:
    events = Inlet([Sent(1, {"job": "a"}), Sent(2, {"job": "b", "rate": 2.0}, 1.0)])
    assert changes_of_run({}, events[:1], events, run("one")) == [{"job": "b", "rate": 2.0}]


def test_a_run_by_hand_plans_for_its_parameters_alone(workspace: Workspace) -> None:
    events = Inlet([Sent(1, {"job": "a", "rate": 1.0})])
    by_hand, asked = run("hand", "manual"), {"job": "b", "rate": 2.0}
    assert changes_of_run(asked, [], events, by_hand) == [asked]
    assert newest_of_job(asked, Inlet([Sent(2, {"job": "b", "rate": 9.0}, 1.0)]), by_hand) == asked
    assert workspace.list() == []
