"""Shared slots: the tasks in them, and their numbers in Flink."""

from hypothesis import given
from hypothesis import strategies as st

from models.plan.slots import SlotBundle, is_nested, slots_in, subtasks_in, tasks_in

GROUPS = {"a": "x", "b": "x", "c": "x", "d": "y"}


def slots(**workers: list[tuple[str, int]]) -> dict[str, tuple[SlotBundle, ...]]:
    """Worker -> vertices of a slot, a letter each, and number of such slots."""
    return {w: tuple(SlotBundle(vertices=tuple(v), slots=n) for v, n in own) for w, own in workers.items()}


def test_tasks_and_slots_are_counted() -> None:
    found = slots(tm1=[("abc", 2), ("a", 1)], tm2=[("ab", 1)])
    assert tasks_in(found["tm1"]) == {"a": 3, "b": 2, "c": 2}
    assert slots_in(found) == 4


def test_slots_with_the_most_tasks_have_the_lowest_numbers() -> None:
    found = slots(tm1=[("a", 1), ("ab", 1)], tm2=[("abc", 1), ("ab", 1)])
    # slots: abc on tm2, ab on tm1, ab on tm2, a on tm1
    assert sorted(subtasks_in(found, GROUPS)) == [
        ("a", 0, "tm2", None),
        ("a", 1, "tm1", None),
        ("a", 2, "tm2", None),
        ("a", 3, "tm1", None),
        ("b", 0, "tm2", None),
        ("b", 1, "tm1", None),
        ("b", 2, "tm2", None),
        ("c", 0, "tm2", None),
    ]


def test_slots_of_another_mix_are_numbered_on_each_worker() -> None:
    found = slots(tm1=[("ab", 2), ("a", 1)], tm2=[("ac", 1)])
    # slots: ab, ab on tm1, ac on tm2, a on tm1
    assert sorted(subtasks_in(found, GROUPS)) == [
        ("a", 0, "tm1", 0),
        ("a", 1, "tm1", 1),
        ("a", 2, "tm2", 0),
        ("a", 3, "tm1", 2),
        ("b", 0, "tm1", 0),
        ("b", 1, "tm1", 1),
        ("c", 0, "tm2", 0),
    ]


@given(st.lists(st.tuples(st.sampled_from(["abc", "ab", "ac", "a", "d"]), st.sampled_from(["tm1", "tm2"])), min_size=1))
def test_every_slot_of_any_mix_gets_its_tasks(drawn: list[tuple[str, str]]) -> None:
    found = slots(**{w: [(one, 1) for one, worker in drawn if worker == w] for w in {w for _, w in drawn}})
    placed = subtasks_in(found, GROUPS)
    held: dict[tuple[str, int | None], list[str]] = {}
    for vertex, _, worker, slot in placed:
        held.setdefault((worker, slot), []).append(vertex)
    for vertex in "abcd":
        assert [t.subtask for t in placed if t.vertex == vertex] == list(range(sum(vertex in b for b, _ in drawn)))
    if not is_nested(found, GROUPS):
        assert sorted((w, "".join(sorted(b))) for (w, _), b in held.items()) == sorted((w, b) for b, w in drawn)


def test_flinks_default_slots_include_one_another() -> None:
    assert is_nested(slots(tm1=[("abc", 1), ("ab", 1)], tm2=[("a", 2), ("d", 1)]), GROUPS)
    assert not is_nested(slots(tm1=[("ab", 1)], tm2=[("ac", 1)]), GROUPS)
    # Vertices with slots of their own share none, so they need not include one another.
    assert is_nested(slots(tm1=[("a", 1)], tm2=[("b", 1)]), {"a": None, "b": None})
    assert not is_nested(slots(tm1=[("a", 1)], tm2=[("b", 1)]), GROUPS)


@given(st.lists(st.tuples(st.integers(1, 3), st.sampled_from(["tm1", "tm2", "tm3"])), min_size=1, max_size=8))
def test_in_default_slots_the_same_number_is_on_the_same_worker(drawn: list[tuple[int, str]]) -> None:
    found: dict[str, tuple[SlotBundle, ...]] = {}
    for size, worker in drawn:
        found[worker] = (*found.get(worker, ()), SlotBundle(vertices=tuple("abc"[:size]), slots=1))
    assert is_nested(found, GROUPS)
    workers: dict[int, set[str]] = {}
    for _, number, worker, slot in subtasks_in(found, GROUPS):
        assert slot is None
        workers.setdefault(number, set()).add(worker)
    assert all(len(on) == 1 for on in workers.values())
