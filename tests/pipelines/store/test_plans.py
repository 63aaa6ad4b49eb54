"""Plans are never lost or duplicated, and changed files are never used."""

import json
import logging
import subprocess
import sys
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import pytest

from models.errors import InvalidInput
from models.plan.content import Plan, PlanContent
from models.plan.differences import difference
from models.plan.parts import CostVector, Interval, Lineage, OperatorPlan
from pipelines.store.plans import PlanStore
from pipelines.store.workspace import Damaged, Workspace

CREATED_AT = "2026-01-02T03:04:05+00:00"


def content(window_tasks: int = 3, job: str = "q5", run: str = "run-1") -> PlanContent:
    """A source on a worker of its own, and a window spread over two workers."""
    spread = {"tm-2": {"window": (window_tasks + 1) // 2}}
    if window_tasks > 1:
        spread["tm-3"] = {"window": window_tasks // 2}
    return PlanContent(
        job=job,
        target_rate=1000.0 * window_tasks,
        source_rates={"source": 1000.0 * window_tasks},
        headroom=1.1,
        task_slots=window_tasks,
        total_slots=window_tasks + 1,
        memory_mb=4096,
        operators=(
            OperatorPlan(
                name="source",
                parallelism=1,
                managed_memory_mb=0,
                records_in_per_s=1000.0 * window_tasks,
                predicted_busyness=0.4,
                reason="one task carries the rate",
            ),
            OperatorPlan(
                name="window",
                parallelism=window_tasks,
                managed_memory_mb=256.0,
                records_in_per_s=1000.0 * window_tasks,
                predicted_busyness=0.8,
                reason="the model asks for so many",
            ),
        ),
        placement={"tm-1": {"source": 1}, **spread},
        cost=CostVector(cpu=0.1, io=0.2, net=0.3),
        thresholds=CostVector(cpu=0.5, io=0.5, net=1.0),
        placement_policy="caps",
        placement_status="optimal",
        predicted_mst=Interval(value=1100.0 * window_tasks, low=900.0 * window_tasks, high=1300.0 * window_tasks),
        reasons=("the model is log",),
        lineage=Lineage(
            run=run, trigger="plan", testbed="simulator", model="log", policy="bids2", code_version="0.1.0", seed=7
        ),
    )


def plan_of(version: int, before: Plan | None, window_tasks: int = 3, run: str = "run-1") -> Plan:
    made = content(window_tasks, run=run)
    change = None if before is None else difference(before, made)
    return Plan(**dict(made), version=version, created_at=CREATED_AT, difference=change)


@pytest.fixture
def store(tmp_path: Path) -> PlanStore:
    return PlanStore(Workspace(tmp_path / "workspace"))


@pytest.fixture
def three(store: PlanStore) -> PlanStore:
    for tasks in (3, 5, 4):
        store.publish(content(tasks), CREATED_AT)
    return store


def file_of(store: PlanStore, version: int, job: str = "q5") -> Path:
    return Path(store.uri(job, version).removeprefix("file://"))


def append_many(folder: str, writer: int, count: int) -> None:
    store = PlanStore(Workspace(folder))
    for number in range(count):
        run = f"writer-{writer}-{number}"

        def make(version: int, before: Plan | None, run: str = run) -> Plan:
            return plan_of(version, before, window_tasks=1 + (version % 4), run=run)

        store.append("q5", make)


def test_versions_count_from_one_and_carry_the_difference_from_the_one_before(three: PlanStore) -> None:
    assert three.versions("q5") == [1, 2, 3]
    assert three.get("q5", 1).difference is None
    change = three.get("q5", 2).difference
    assert change is not None
    assert (change.from_version, change.task_slots_before, change.task_slots_after) == (1, 3, 5)
    assert [(c.operator, c.before, c.after) for c in change.parallelism] == [("window", 3, 5)]


def test_what_is_read_is_what_was_stored(store: PlanStore) -> None:
    stored = store.publish(content(), CREATED_AT)
    assert PlanStore(Workspace(store.uri("q5", 1).partition("/plans/")[0])).get("q5", 1) == stored


@pytest.mark.slow
def test_processes_that_append_at_once_lose_no_plan_and_make_none_twice(tmp_path: Path) -> None:
    folder = str(tmp_path / "shared")
    writers = [subprocess.Popen([sys.executable, __file__, folder, str(writer), "50"]) for writer in range(4)]
    assert [writer.wait(timeout=120) for writer in writers] == [0, 0, 0, 0]

    store = PlanStore(Workspace(folder))
    plans = [store.get("q5", version) for version in store.versions("q5")]
    assert [plan.version for plan in plans] == list(range(1, 201))
    assert {plan.lineage.run for plan in plans} == {f"writer-{w}-{n}" for w in range(4) for n in range(50)}
    for before, after in pairwise(plans):
        assert after.difference == difference(before, after)


def test_the_loser_of_a_race_makes_its_plan_again(store: PlanStore) -> None:
    asked: list[tuple[int, int | None]] = []

    def make(version: int, before: Plan | None) -> Plan:
        asked.append((version, before.version if before else None))
        if len(asked) == 1:
            store.publish(content(2), CREATED_AT)  # another writer is faster
        return plan_of(version, before, window_tasks=5)

    stored = store.append("q5", make)
    assert asked == [(1, None), (2, 1)]
    assert stored.version == 2
    assert stored.difference is not None and stored.difference.task_slots_before == 2


def test_a_plan_for_another_version_is_refused(store: PlanStore) -> None:
    with pytest.raises(ValueError, match="asked for q5@1, but got q5@7"):
        store.append("q5", lambda version, before: plan_of(7, before))
    assert store.versions("q5") == []


def test_returning_the_plan_in_force_adds_no_version(three: PlanStore) -> None:
    kept = three.append("q5", lambda _version, before: before or plan_of(1, None))
    assert kept.version == 3
    assert three.versions("q5") == [1, 2, 3]


def test_publishing_the_same_content_again_adds_no_version(three: PlanStore) -> None:
    again = three.publish(content(4), "2027-01-01T00:00:00+00:00")
    assert (again.version, again.created_at) == (3, CREATED_AT)
    assert three.publish(content(4, run="run-2"), CREATED_AT).version == 4


def test_a_version_that_a_folder_stands_for_is_an_error_and_no_endless_loop(store: PlanStore) -> None:
    file_of(store, 1).mkdir(parents=True)
    with pytest.raises(Exception, match=r"v000001\.json exists, but is not a file"):
        store.publish(content(), CREATED_AT)


def truncate(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-40])


def change_a_figure(path: Path) -> None:
    path.write_text(path.read_text().replace('"headroom": 1.1', '"headroom": 1.9'))


def empty(path: Path) -> None:
    path.write_bytes(b"")


def replace_by_another_version(path: Path) -> None:
    path.write_bytes(path.with_name("v000001.json").read_bytes())


def spoil_the_text(path: Path) -> None:
    """Half of a pair of surrogates, which JSON can escape and UTF-8 cannot hold."""
    document = json.loads(path.read_text())
    document["plan"]["reasons"] = ["\ud800"]
    path.write_text(json.dumps(document))


def write_a_list(path: Path) -> None:
    path.write_text("[1, 2]")


DAMAGES = [truncate, change_a_figure, empty, replace_by_another_version, spoil_the_text, write_a_list]


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_file_is_refused_by_name(three: PlanStore, damage: Callable[[Path], None]) -> None:
    damage(file_of(three, 3))
    with pytest.raises(Damaged, match=r"plans/q5/v000003\.json"):
        three.get("q5", 3)


@pytest.mark.parametrize("damage", DAMAGES)
def test_the_last_good_version_stands_in_for_a_damaged_one_and_this_is_said(
    three: PlanStore, damage: Callable[[Path], None], caplog: pytest.LogCaptureFixture
) -> None:
    damage(file_of(three, 3))
    with caplog.at_level(logging.WARNING):
        latest = three.latest("q5")
    assert latest is not None and latest.version == 2
    assert "v000003.json" in caplog.text
    assert "version 2 of the plan of q5 is used instead" in caplog.text


def test_a_damaged_version_is_not_overwritten_by_the_next(three: PlanStore) -> None:
    truncate(file_of(three, 3))
    before = file_of(three, 3).read_bytes()
    added = three.publish(content(1), CREATED_AT)
    assert added.version == 4
    assert added.difference is not None and added.difference.from_version == 2
    assert file_of(three, 3).read_bytes() == before


def test_when_all_versions_are_damaged_the_newest_is_named(three: PlanStore) -> None:
    for version in (1, 2, 3):
        truncate(file_of(three, version))
    with pytest.raises(Damaged, match=r"v000003\.json"):
        three.latest("q5")


def test_a_reformatted_file_keeps_its_digest(three: PlanStore) -> None:
    path = file_of(three, 2)
    path.write_text(json.dumps(json.loads(path.read_text()), sort_keys=True, separators=(",", ":")))
    assert three.get("q5", 2).task_slots == 5


def test_rollback_adds_a_version_that_deploys_the_old_one(three: PlanStore) -> None:
    rolled = three.rollback("q5", 1, "2026-05-05T05:05:05+00:00", by="Ada")
    first = three.get("q5", 1)
    assert three.get("q5", 4) == rolled
    assert (rolled.version, rolled.parallelism, rolled.placement) == (4, first.parallelism, first.placement)
    assert rolled.lineage.trigger == "rollback"
    assert rolled.lineage.run == first.lineage.run
    assert rolled.reasons == (f"rolled back from version 3 to version 1 of {CREATED_AT}", *first.reasons)
    assert rolled.difference is not None
    assert (rolled.difference.from_version, rolled.difference.task_slots_after) == (3, 3)


def test_rollback_to_the_current_version_is_refused(three: PlanStore) -> None:
    with pytest.raises(InvalidInput, match="version 3 of the plan of 'q5' is the current one"):
        three.rollback("q5", 3, CREATED_AT, by="Ada")


def test_a_rollback_decided_on_the_sight_of_an_older_version_is_refused(three: PlanStore) -> None:
    with pytest.raises(InvalidInput, match="version 3 of the plan of 'q5' was published after version 2; nothing is"):
        three.rollback("q5", 1, CREATED_AT, by="Ada", current=2)
    assert three.versions("q5") == [1, 2, 3]
    assert three.rollback("q5", 1, CREATED_AT, by="Ada", current=3).version == 4


def test_an_unknown_version_or_job_is_answered_with_what_exists(three: PlanStore) -> None:
    three.publish(content(job="q8"), CREATED_AT)
    with pytest.raises(InvalidInput, match="no version 9; its versions: 1, 2, 3"):
        three.get("q5", 9)
    with pytest.raises(InvalidInput, match=r"no plan of the job 'q7'.*jobs with plans: q5, q8"):
        three.get("q7", 1)
    with pytest.raises(InvalidInput, match="jobs with plans: q5, q8"):
        three.current("q7")


def test_an_empty_store_says_how_to_begin(store: PlanStore) -> None:
    assert store.latest("q5") is None
    assert store.jobs() == []
    with pytest.raises(InvalidInput, match="run `sluice plan` first"):
        store.current("q5")


def test_other_files_beside_the_plans_are_no_versions(three: PlanStore) -> None:
    folder = file_of(three, 1).parent
    for name in (".tmp-0123", "v7.json", "notes.txt", "v000009.json.bak"):
        (folder / name).write_text("{}")
    assert three.versions("q5") == [1, 2, 3]
    assert three.jobs() == ["q5"]


def test_version_numbers_beyond_six_digits_still_sort(three: PlanStore) -> None:
    file_of(three, 1).with_name("v1000000.json").write_text("{}")
    assert three.versions("q5")[-1] == 1_000_000
    assert three.publish(content(1), CREATED_AT).version == 1_000_001


def test_the_store_works_in_memory_too(request: pytest.FixtureRequest) -> None:
    store = PlanStore(Workspace(f"memory://plan-store-{request.node.name}"))
    assert store.publish(content(3), CREATED_AT).version == 1
    assert store.publish(content(5), CREATED_AT).version == 2
    assert store.rollback("q5", 1, CREATED_AT, by="Ada").parallelism == {"source": 1, "window": 3}
    assert store.versions("q5") == [1, 2, 3]


if __name__ == "__main__":
    append_many(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
