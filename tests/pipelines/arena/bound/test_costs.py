"""The most that operators can do."""

import pytest

from pipelines.arena.bound.costs import TASK_NOISE, buffered, operator_limits
from pipelines.arena.bound.shares import fullest_shares
from pipelines.inputs.catalogue import load_job
from testbeds.simulator.settings import Physics


def test_a_task_does_what_its_cpu_time_allows_on_the_machines_of_the_seed(job):
    _, of_map, sink = operator_limits(job, 4, 1.25, {}, Physics())
    # 100 us a record, a quarter more on these machines: 8000 records/s a task.
    assert of_map.capacity == pytest.approx([n * 8000 * (1 + TASK_NOISE) for n in (1, 2, 3, 4)])
    assert sink.capacity[0] == pytest.approx(80_000 * (1 + TASK_NOISE))
    assert of_map.waiting_s == of_map.forgiven_s == 0


def test_a_task_is_held_by_what_it_waits_for_outside_the_job(job):
    operators = tuple(
        o.model_copy(update={"cost": o.cost.model_copy(update={"external_wait_s": 3e-4})}) if o.name == "map" else o
        for o in job.operators
    )
    _, of_map, _ = operator_limits(job.model_copy(update={"operators": operators}), 1, 2.0, {}, Physics())
    # 100 us a record on machines that take twice as long, and 300 us that they do not change: 500 us.
    assert of_map.capacity == pytest.approx([2000 * (1 + TASK_NOISE)])


def test_buffers_hold_records_of_all_operators_upstream(job):
    # 2 x 3 + 8 buffers of 32 KiB leave a source task, 3 x (2 x 1 + 8) belong to the tasks of the map: 44, of 327.68 records.
    found = buffered(job, {"source": 1, "map": 3, "sink": 1}, Physics())
    assert found["source"] == 0
    assert found["map"] == pytest.approx(44 * 327.68)
    assert found["sink"] == pytest.approx((44 + 3 * (2 + 8) + 14) * 327.68)


def test_work_waits_for_windows_to_fire():
    limits = {o.name: o for o in operator_limits(load_job("nexmark-q5"), 8, 1.0, {}, Physics())}
    # 0.49 of the work of the last 10 s and of the pane that fills, and 2 panes of 2 s at a stop.
    assert limits["count-window"].waiting_s == pytest.approx(0.49 * 12)
    assert limits["count-window"].forgiven_s == pytest.approx(0.49 * 4)
    # Counts leave the window within 12 s, maxima at once.
    assert limits["join"].waiting_s == pytest.approx(12)
    # A write buffer of 64 MiB is full after 524 288 records of 128 bytes, and then takes 50 ms.
    work_s = 0.9199861 * (2.2e-5 + 0.05 / 524_288)
    assert limits["count-window"].work_s == pytest.approx(work_s / (1 + TASK_NOISE))


def test_key_groups_are_not_divisible():
    job = load_job("nexmark-q11").model_copy(update={"key_groups": 128})
    operators = tuple(
        o.model_copy(update={"keys": o.keys.model_copy(update={"hot_share": 0.0, "hot_period_records": None})})
        if o.keys
        else o
        for o in job.operators
    )
    shares = fullest_shares(job.model_copy(update={"operators": operators}), 40)["session-window"]
    assert shares[31] == pytest.approx(4 / 128) and shares[29] == pytest.approx(5 / 128)
    # Of records with hot keys nothing is assumed: a quarter of the others is less than an even share.
    assert fullest_shares(job, 40)["session-window"][29] == pytest.approx(1 / 30)
