"""Decisions that ask for more than the cluster has."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from models.errors import Infeasible
from models.scaling.limits import most_tasks, within
from pipelines.inputs.catalogue import load_job

TASKS = st.dictionaries(st.sampled_from("abcdef"), st.integers(1, 40), min_size=1)


def test_what_fits_is_granted_whole():
    granted = within({"a": 5, "b": 1}, {"a": 2, "b": 3, "c": 1}, slots=7, most={})
    assert (granted.parallelism, granted.note) == ({"a": 5, "b": 1, "c": 1}, None)


def test_operators_that_grow_share_what_is_left():
    # 4 stay, 4 are left of 12 for a growth of 8 and one of 4: half of what is asked would be 4 and 2; 6 are granted.
    granted = within({"a": 10, "b": 6}, {"a": 2, "b": 2, "c": 4}, slots=14, most={})
    assert granted.parallelism == {"a": 6, "b": 4, "c": 4}
    assert granted.note == "20 tasks wanted and 14 slots there, so granted: a 6 of 10, b 4 of 6"


def test_growth_of_one_operator_costs_no_other_one_tasks():
    granted = within({"a": 50}, {"a": 5, "b": 5}, slots=10, most={})
    assert granted.parallelism == {"a": 5, "b": 5}


def test_what_shrinks_makes_room():
    assert within({"a": 50, "b": 2}, {"a": 5, "b": 5}, slots=10, most={}).parallelism == {"a": 8, "b": 2}


def test_no_operator_gets_more_than_it_may_have():
    granted = within({"a": 9}, {"a": 1, "b": 1}, slots=20, most={"a": 4})
    assert granted.parallelism == {"a": 4, "b": 1}
    assert granted.note == "operators may not have more, so granted: a 4 of 9"


def test_a_job_that_is_too_large_is_refused():
    with pytest.raises(Infeasible, match="must fit the cluster's 3 slots, but without growing they need 4"):
        within({}, {"a": 2, "b": 2}, slots=3, most={})


@given(wanted=TASKS, running=TASKS, more=st.integers(0, 60))
def test_slots_are_used_and_never_exceeded(wanted, running, more):
    slots = sum(running.values()) + more
    granted = within(wanted, running, slots, {}).parallelism
    asked = {name: min(wanted.get(name, tasks), slots) for name, tasks in running.items()}
    assert sum(granted.values()) == min(slots, sum(asked.values())) or any(asked[n] < running[n] for n in running)
    assert all(min(asked[n], running[n]) <= granted[n] <= asked[n] for n in running)
    assert sum(granted.values()) <= slots
    short = [n for n in running if granted[n] < asked[n]]
    assert not short or sum(granted.values()) == slots


def test_key_groups_and_partitions_limit_a_job():
    job = load_job("nexmark-q11")
    keyed = job.model_copy(update={"key_groups": 32})
    assert most_tasks(job) == {}
    assert most_tasks(keyed) == {"session-window": 32}
