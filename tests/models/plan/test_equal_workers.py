"""Equal workers as one."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from models.plan.changes import PlacementChange
from models.plan.equal_workers import GroupedChange, WorkerGroup, equal_workers, grouped_changes, spans


def test_workers_with_the_same_tasks_are_one_group_in_the_order_of_the_plan() -> None:
    placement = {"tm-1": {"map": 4}, "tm-2": {"map": 3, "sink": 1}, "tm-3": {"map": 4}, "tm-4": {"sink": 1, "map": 3}}
    assert equal_workers(placement) == (
        WorkerGroup(workers=("tm-1", "tm-3"), tasks={"map": 4}),
        WorkerGroup(workers=("tm-2", "tm-4"), tasks={"map": 3, "sink": 1}),
    )
    assert equal_workers({}) == ()


def test_128_workers_of_two_sorts_are_two_groups() -> None:
    placement = {f"tm-{n}": {"map": 4} if n <= 100 else {"map": 3} for n in range(1, 129)}
    assert [(len(group.workers), spans(group.workers)) for group in equal_workers(placement)] == [
        (100, ("tm-1 to tm-100",)),
        (28, ("tm-101 to tm-128",)),
    ]


def test_changes_by_the_same_numbers_are_one_and_count_all_their_tasks() -> None:
    changes = [
        PlacementChange(worker=worker, operator=operator, before=before, after=after)
        for worker, operator, before, after in [
            ("tm-1", "map", 4, 2), ("tm-2", "map", 4, 2), ("tm-3", "map", 0, 4), ("tm-1", "sink", 4, 2),
        ]
    ]  # fmt: skip
    found = grouped_changes(changes)
    assert found == (
        GroupedChange(workers=("tm-1", "tm-2"), operator="map", before=4, after=2),
        GroupedChange(workers=("tm-3",), operator="map", before=0, after=4),
        GroupedChange(workers=("tm-1",), operator="sink", before=4, after=2),
    )
    assert [one.started for one in found] == [-4, 4, -2]


@pytest.mark.parametrize(
    ("names", "short"),
    [
        ([], ()),
        (["tm-1"], ("tm-1",)),
        (["tm-1", "tm-2"], ("tm-1", "tm-2")),
        (["tm-1", "tm-2", "tm-3", "tm-7", "small-8", "small-9"], ("tm-1 to tm-3", "tm-7", "small-8", "small-9")),
        (["tm-9", "tm-10", "tm-11"], ("tm-9 to tm-11",)),
        (["tm-3", "tm-2", "tm-1"], ("tm-3", "tm-2", "tm-1")),
        (["tm-08", "tm-09", "tm-10"], ("tm-08", "tm-09", "tm-10")),
        (["a", "b", "c"], ("a", "b", "c")),
    ],
)
def test_names_that_are_numbered_in_a_row_are_a_span(names: list[str], short: tuple[str, ...]) -> None:
    assert spans(names) == short


@settings(max_examples=30)
@given(st.lists(st.integers(0, 40), unique=True))
def test_spans_name_every_worker_once(numbers: list[int]) -> None:
    named: list[int] = []
    for span in spans([f"tm-{n}" for n in numbers]):
        first, _, last = span.partition(" to ")
        ends = [int(name.removeprefix("tm-")) for name in (first, last or first)]
        named += range(ends[0], ends[1] + 1)
    assert named == numbers
