from pathlib import Path

import pytest

from models.capacity.mst import MstSearch, MstSettings
from models.capacity.observation import Observation
from models.errors import Infeasible, InvalidInput
from models.job import Job
from pipelines.inputs.catalogue import load_cluster, load_job
from pipelines.inputs.measurements import parse_parallelism, read_measurements
from testbeds import conformance, protocol
from testbeds.protocol import Configuration
from testbeds.recorded import Recorded
from testbeds.suite import small_job

STREAMBED = Path(__file__).parent.parent / "data" / "streambed"


def observed(mst: float, slots: int = 3, memory_mb: float = 8192.0, **parallelism: int) -> Observation:
    return Observation(run="r", task_slots=slots, memory_mb=memory_mb, parallelism=parallelism, mst=mst)


class TestRecordedConformance(
    conformance.RefusalConformance,
    conformance.RateConformance,
    conformance.RunConformance,
    conformance.RepeatConformance,
):
    places_tasks = False

    @pytest.fixture
    def testbed(self) -> protocol.Testbed:
        return Recorded([observed(20_000.0), observed(21_000.0), observed(35_000.0, slots=5)], load_cluster("testbed"))

    def test_its_samples_are_an_empty_table_of_the_schema(self, run: protocol.Run) -> None:
        samples = run.inject(1000.0, self.window_s, "observe").samples
        assert samples.schema.equals(protocol.SAMPLE_SCHEMA) and samples.num_rows == 0


@pytest.fixture
def q5() -> Job:
    return load_job("nexmark-q5")


@pytest.fixture
def search_q5(q5: Job) -> Recorded:
    """StreamBed's exploration of q5, as published."""
    return Recorded(read_measurements(STREAMBED / "search_q5.csv", job=q5), load_cluster("testbed"))


def asked(job: Job, text: str, memory_mb: float) -> Configuration:
    return Configuration(parallelism={"source": 32, **parse_parallelism(job, text)}, memory_mb=memory_mb)


def test_observations_keep_their_order_and_their_parallelism(search_q5: Recorded) -> None:
    first = search_q5.observations[:4]
    assert [(o.task_slots, o.memory_mb) for o in first] == [(9, 32768), (48, 32768), (9, 65536), (48, 65536)]
    assert first[1].mst == pytest.approx(925408.63)
    assert first[1].parallelism["count-window"] == 35 and first[1].parallelism["join"] == 3
    assert first[1].parallelism["source"] == 32
    assert all(
        sum(tasks for name, tasks in o.parallelism.items() if name != "source") == o.task_slots
        for o in search_q5.observations
    )


def test_limits_are_what_was_recorded(search_q5: Recorded) -> None:
    assert search_q5.limits.max_task_slots == 48
    assert search_q5.limits.memory_levels_mb == (32768.0, 65536.0)
    assert search_q5.limits.slots_per_worker == 16


def test_an_mst_search_finds_the_recorded_mst(search_q5: Recorded, q5: Job) -> None:
    """35 slots with 65536 MB were measured once: 833 395 events/s."""
    search = MstSearch(MstSettings.complex())
    with search_q5.deploy(q5, asked(q5, "2|24|1|1|2|1|2|1|1", 65536), run="r", seed=0) as run:
        while (injection := search.next()) is not None:
            search.observe(run.inject(injection.rate, injection.seconds, injection.phase).achieved_rate)
    assert search.mst == pytest.approx(833395.2, rel=0.02)


def test_seeds_choose_among_repeated_measurements(search_q5: Recorded, q5: Job) -> None:
    """48 slots with 65536 MB were measured three times."""
    configuration = asked(q5, "3|35|1|1|2|1|3|1|1", 65536)
    seen = {round(search_q5.deploy(q5, configuration, run="r", seed=s).observation.mst) for s in range(30)}
    assert seen == {876882, 1000322, 937700}


def test_another_parallelism_was_not_recorded(search_q5: Recorded, q5: Job) -> None:
    with pytest.raises(InvalidInput, match="recorded with another parallelism only; ask for bids 2, count-window 24"):
        search_q5.deploy(q5, asked(q5, "3|23|1|1|2|1|2|1|1", 65536), run="r", seed=0)


def test_a_budget_that_was_not_recorded_gets_the_nearest_ones(search_q5: Recorded, q5: Job) -> None:
    with pytest.raises(
        InvalidInput, match=r"30 task slots with 65536 MiB.*nearest that were: 29 with 65536 MiB, 35 with"
    ):
        search_q5.deploy(q5, asked(q5, "2|19|1|1|2|1|2|1|1", 65536), run="r", seed=0)


def test_more_than_was_ever_recorded_does_not_fit(search_q5: Recorded, q5: Job) -> None:
    with pytest.raises(Infeasible, match="at most 48 task slots with 32768 to 65536 MiB"):
        search_q5.deploy(q5, asked(q5, "3|36|1|1|2|1|3|1|1", 65536), run="r", seed=0)
    with pytest.raises(Infeasible, match="but 48 task slots with 8192 MiB"):
        search_q5.deploy(q5, asked(q5, "3|35|1|1|2|1|3|1|1", 8192), run="r", seed=0)


def test_beyond_the_mst_the_rest_is_pending() -> None:
    run = Recorded([observed(100.0)], load_cluster("testbed")).deploy(
        small_job(),
        Configuration(parallelism={"source": 9, "map": 1, "count": 1, "sink": 1}, memory_mb=8192),
        run="r",
        seed=0,
    )
    assert run.inject(80.0, 10.0, "observe").pending_records == 0
    window = run.inject(130.0, 10.0, "observe")
    assert (window.achieved_rate, window.pending_records) == (100.0, 300.0)
    assert run.inject(130.0, 5.0, "observe").pending_records == 450.0
    assert run.inject(50.0, 5.0, "observe").pending_records == 0
    assert run.elapsed_s == 30.0


def test_no_observation_is_no_testbed() -> None:
    with pytest.raises(InvalidInput, match="needs at least one observation"):
        Recorded([], load_cluster("testbed"))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("3|35|1", r"must hold 9 numbers \(bids, count-window, .*holds 3"),
        ("3|35|1|1|2|1|3|1|x", "holds 'x'"),
        ("3|35|1|1|2|1|3|1|0", "holds '0'"),
        ("", "holds 1"),
    ],
)
def test_a_parallelism_that_is_not_of_this_job_is_reported(text: str, message: str, q5: Job) -> None:
    with pytest.raises(InvalidInput, match=message):
        parse_parallelism(q5, text)


def test_measurements_of_another_job_are_reported_with_file_and_line() -> None:
    path = STREAMBED / "search_q1.csv"
    with pytest.raises(InvalidInput, match=r"search_q1.csv, line 2, column 'parallelism_per_operator': .*9 numbers"):
        read_measurements(path, job=load_job("nexmark-q5"))


@pytest.mark.parametrize(("name", "job"), [("search_q1", "nexmark-q1"), ("search_q5", "nexmark-q5")])
def test_the_published_files_are_of_the_catalogues_jobs(name: str, job: str) -> None:
    for o in read_measurements(STREAMBED / f"{name}.csv", job=load_job(job)):
        assert o.parallelism.keys() == {p.name for p in load_job(job).operators}
