"""Waits outside the job, set apart from a lack of cores by numbers that can be checked by hand."""

import pytest

from models.capacity.calibration import WorkerWindow
from models.capacity.twin.waits import WindowOn, cores_known, external_wait_s


def window(rate: float, busy_s: float, cpu_s: float = 0.002, tasks: int = 4, worker: str = "tm-1") -> WorkerWindow:
    """Of tasks of `call`, with busy and CPU seconds of a record."""
    return WorkerWindow(
        cores=rate * cpu_s,
        busy=rate * busy_s,
        rates={"call": rate},
        worker=worker,
        tasks=tasks,
        threads={"call": rate * busy_s},
    )


def found(windows: list[WorkerWindow], cores: float, cpu_s: float = 0.002, seen_cpu_s: float = 0.002) -> float:
    return external_wait_s([WindowOn(w, cores) for w in windows], cpu_s, seen_cpu_s, "call")


def test_busy_time_without_cpu_time_is_a_wait_where_cores_were_free() -> None:
    # 0.2 of one core, and 10 ms for 2 ms of CPU time.
    assert found([window(100, 0.010)], cores=1) == pytest.approx(0.008)


def test_where_the_cores_were_in_use_it_is_a_lack_of_them() -> None:
    # 0.9 of one core.
    assert found([window(450, 0.010)], cores=1) == 0
    # As many cores as tasks: none can have lacked one.
    assert found([window(450, 0.010, tasks=1)], cores=1) == pytest.approx(0.008)


def test_the_use_of_the_cores_explains_as_large_a_share_of_the_busy_time() -> None:
    # 0.4 of one core: of 3.3 ms, 40 % may be spent waiting for it, and 1.3 ms are 39 %; of 3.4 ms, 1.4 ms are 41 %.
    assert found([window(200, 0.0033)], cores=1) == 0
    assert found([window(200, 0.0034)], cores=1) == pytest.approx(0.0014)


def test_where_cores_were_in_use_in_all_windows_the_least_used_decide() -> None:
    # 0.7 of one core at 10 ms, of which 8 are more than 70 %; in the other window its tasks lacked it, too.
    assert found([window(350, 0.010), window(490, 0.014)], cores=1) == pytest.approx(0.008)
    assert found([window(450, 0.010), window(490, 0.014)], cores=1) == 0


def test_a_small_share_is_no_wait() -> None:
    # 0.2 and 0.25 ms of 2.2 and 2.25, with a core for each task.
    assert found([window(100, 0.0022)], cores=4) == 0
    assert found([window(100, 0.00225)], cores=4) == pytest.approx(0.00025)


def test_the_median_of_the_windows_counts() -> None:
    windows = [window(100, busy_s) for busy_s in (0.009, 0.010, 0.050)]
    assert found([*windows, window(450, 0.9)], cores=1) == pytest.approx(0.008)


def test_a_cost_that_was_fitted_far_too_low_makes_no_wait() -> None:
    # The samples' own 2 ms leave nothing of a record's 2.1 ms, though the fit leaves it 0.2 ms.
    assert found([window(100, 0.0021)], cores=4, cpu_s=0.0002) == 0


def test_without_a_window_that_shows_it_there_is_none() -> None:
    untimed = WorkerWindow(cores=0.2, busy=1.0, rates={"call": 100.0}, tasks=1)
    idle = WorkerWindow(cores=0.0, busy=0.0, rates={"call": 0.0}, tasks=1, threads={"call": 0.0})
    assert found([untimed, idle], cores=1) == 0
    assert found([], cores=1) == 0


def test_cores_that_are_not_stated_are_the_most_that_were_used() -> None:
    windows = [window(100, 0.01), window(800, 0.01, worker="tm-2"), window(600, 0.01, worker="tm-3")]
    assert [one.cores for one in cores_known(windows, {"tm-2": 4.0})] == [pytest.approx(1.2), 4.0, pytest.approx(1.2)]
    # 0.2 of the 1.2 cores.
    assert cores_known(windows, {"tm-2": 4.0})[0].use == pytest.approx(1 / 6)


def test_a_worker_has_a_core_at_least() -> None:
    (one,) = cores_known([window(100, 0.01)], {})
    assert (one.cores, one.use) == (1.0, pytest.approx(0.2))
