"""From a cell to a testbed, an initial deployment and a result."""

import pytest

from pipelines.arena.replays.cell import Cell
from pipelines.arena.replays.compute import run_cell, start, with_key_groups
from pipelines.arena.replays.workloads import Workload
from pipelines.arena.request import recommended_settings
from pipelines.inputs.catalogue import load_cluster, load_job


def test_starts_are_half_and_twice_of_what_the_first_rate_needs(cell):
    # 8000 records/s with a fifth of headroom take 0.096, 0.96 and 0.096 tasks; 20 000 take 2.4 of the map.
    assert start(cell()).parallelism == {"source": 1, "map": 1, "sink": 1}
    workload = {"name": "w", "rates": (20_000, 20_000)}
    sizes = {size: start(cell(workload=workload, start=size)).parallelism["map"] for size in ("well", "under", "over")}
    assert sizes == {"well": 3, "under": 2, "over": 6}
    larger = {"name": "w", "rates": (45_000, 45_000)}
    assert sum(start(cell(workload=larger, start="over")).parallelism.values()) == 10  # all slots


def test_a_rescale_in_place_takes_less_than_a_second_and_one_by_savepoint_half_a_minute(cell):
    in_place, savepoint = (run_cell(cell(rescale_mode=mode)).outcome for mode in ("in-place", "savepoint"))
    assert in_place.rescales > 0 and savepoint.rescales > 0
    assert in_place.downtime_s / in_place.rescales == pytest.approx(0.7, abs=0.05)
    assert 30 < savepoint.downtime_s / savepoint.rescales < 40


def test_a_redeployment_takes_two_and_a_half_minutes(cell):
    found = run_cell(cell(rescale_mode="redeploy")).rescales
    assert found
    assert all(150 < rescale.downtime_s < 160 for rescale in found)


def test_the_burn_in_must_end_before_the_workload(cell):
    with pytest.raises(ValueError, match="burn_in_s must be shorter than the workload of 240 s, but got 240"):
        cell(burn_in_s=240)
    with pytest.raises(ValueError, match="burn_in_s must be a multiple of the reporting interval"):
        cell(burn_in_s=7)


def test_a_job_without_key_groups_gets_those_of_flink():
    job = load_job("nexmark-q11")
    assert job.key_groups is None
    small, large = (
        dict.fromkeys((o.name for o in job.operators), 4),
        dict.fromkeys((o.name for o in job.operators), 100),
    )
    # 128 at least; 100 + 50 tasks rounded up to a power of two are 256.
    assert (with_key_groups(job, small).key_groups, with_key_groups(job, large).key_groups) == (128, 256)
    stated = job.model_copy(update={"key_groups": 720})
    assert with_key_groups(stated, small) is stated


def test_flink_aligns_the_tasks_of_a_job_of_the_catalogue_with_its_key_groups(cluster):
    cell = Cell.model_validate(
        {
            "job": load_job("nexmark-q11"),
            "cluster": load_cluster("arena"),
            "workload": Workload(name="flat", rates=(500_000,) * 15),
            "policy": "flink",
            "start": "under",
            "settings": recommended_settings("flink", "in-place"),
            "burn_in_s": 0,
        }
    )
    aligned, exact = (
        run_cell(cell.model_copy(update={"settings": cell.settings | {"scaling.parallelism-alignment.mode": mode}}))
        for mode in ("EVENLY_SPREAD", "OFF")
    )
    tasks = [r.parallelism["session-window"] for r in aligned.rescales]
    assert tasks and all(128 % n == 0 for n in tasks)
    assert any(128 % r.parallelism["session-window"] for r in exact.rescales)


def test_an_impatient_policy_waits_as_long_as_the_cell_says(cell):
    rates = {"name": "w", "rates": (8000, 32_000) * 6}
    impatient = {"warm_up_intervals": 0, "policy_interval_s": 10}
    result = run_cell(cell(workload=rates, settings=impatient, least_between_s=150))
    ends = [r.time_s + r.downtime_s for r in result.rescales]
    assert len(ends) > 2 and result.outcome.held_back > 0
    assert all(later.time_s >= end + 150 for end, later in zip(ends, result.rescales[1:], strict=False))


def test_downtime_in_place_grows_with_the_state_of_the_fullest_worker():
    """A task a worker; 100 MB/s, and at least the even share of the state. Steps last 0.1 s."""
    cell = Cell.model_validate(
        {
            "job": load_job("nexmark-q11"),
            "cluster": load_cluster("arena"),
            "workload": Workload(name="flat", rates=(400_000,) * 15),
            "policy": "ds2",
            "start": "under",
            "burn_in_s": 0,
        }
    )
    done = [r for r in run_cell(cell).rescales if not r.refused]
    assert done
    for rescale in done:
        even_mb = rescale.state_mb / rescale.parallelism["session-window"]
        assert 0.7 + even_mb * 2**20 / 1e8 - 0.1 <= rescale.downtime_s <= 0.7 + rescale.state_mb * 2**20 / 1e8 + 0.1
    assert done[0].state_mb > 0
