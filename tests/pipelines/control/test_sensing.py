"""What the autopilot sees of a job."""

from collections.abc import Collection

import pytest

from flink.steered import COUNT, SINK, SOURCE, SimulatedClock, SteeredFlink, SteeredJob
from flink_client.metrics.partitions import Place
from flink_client.rest.client import FlinkRest
from pipelines.control.sensing import Sensor, Sight, known_rates, record


def test_source_tasks_without_a_partition_have_nothing_waiting() -> None:
    """Two source tasks read a topic of one partition: the second reports nothing, and more would be of no use."""
    clock = SimulatedClock()
    tasks = {SOURCE: 2, COUNT: 1, SINK: 1}
    job = SteeredJob(clock, partitioned=True, tasks=tasks, rate=lambda t: 1000.0, per_task=400.0)
    with SteeredFlink(job) as flink, FlinkRest(flink.url) as rest:
        sensor = Sensor(rest, job.id, frozenset(), clock)

        def look() -> Sight:
            clock.sleep(10.0)
            return sensor.look()

        meter = sensor.meter(look())
        seen = look()
        record(meter, seen)
        read = meter.read()
        assert read is not None and seen.activity is not None
        source = known_rates(read, seen, frozenset()).operators[seen.names[SOURCE]]
    assert seen.activity.lag_unknown == frozenset()
    # 600 records/s more arrive than one counting task takes.
    assert source.lag_records == pytest.approx(20 * 600.0)
    assert source.partitions == 1
    assert source.at_most(5) == 1


def test_what_arrives_after_a_restart_is_what_was_appended_to_the_log() -> None:
    """975 records/s arrive, and 716 are read. For 8 s after its start the task reports the offset of before, so that what
    waits is unknown at first, and with it by how much that grows."""
    clock = SimulatedClock()
    tasks = {SOURCE: 1, COUNT: 1, SINK: 1}
    job = SteeredJob(clock, partitioned=True, tasks=tasks, rate=lambda t: 975.0, per_task=716.0, offset_late_s=8.0)

    def ends(places: Collection[Place]) -> dict[Place, float]:
        return dict.fromkeys(places, job.log_end())

    with SteeredFlink(job) as flink, FlinkRest(flink.url) as rest:
        sensor = Sensor(rest, job.id, frozenset(), clock, ends)

        def look(after_s: float) -> Sight:
            clock.sleep(after_s)
            return sensor.look()

        look(30.0)
        job.restart()
        sights = [look(6.0), *(look(5.0) for _ in range(4))]
    arriving = [sight.activity.arrival_rate for sight in sights if sight.activity is not None]
    assert arriving == pytest.approx(4 * [975.0])
    assert not any(sight.fault for sight in sights)


def test_a_task_whose_bounded_input_is_read_counts_as_idle() -> None:
    """One of four source tasks finishes between two looks: the other three go on, and nothing of the job is unknown."""
    clock = SimulatedClock()
    job = SteeredJob(clock, tasks={SOURCE: 4, COUNT: 3, SINK: 1}, per_reading=500.0)
    with SteeredFlink(job) as flink, FlinkRest(flink.url) as rest:
        sensor = Sensor(rest, job.id, frozenset({"input_queue_share"}), clock)

        def look() -> Sight:
            clock.sleep(10.0)
            return sensor.look()

        meter = sensor.meter(look())
        record(meter, look())
        job.finished = {SOURCE: 1}
        seen = look()
        record(meter, seen)
        record(meter, look())
        read = meter.read()
    assert read is not None and seen.activity is not None
    assert seen.runs and seen.tasks[seen.names[SOURCE]] == 4
    source = seen.activity.vertices[SOURCE]
    assert source.records_in.tolist() == pytest.approx([0.0, *3 * [2500.0]])
    assert source.busy_s.tolist() == pytest.approx([0.0, *3 * [5.0]])
    assert source.idle_s[0] == pytest.approx(10.0)
    metrics = read.operators[seen.names[SOURCE]]
    # Of 30 s, three tasks were half busy in each, and the first one in 10.
    assert (metrics.parallelism, metrics.busyness) == (4, pytest.approx((3 * 0.5 + 0.5 / 3) / 4))


def test_a_vertex_that_has_ended_since_the_job_was_metered_is_named_once() -> None:
    clock = SimulatedClock()
    job = SteeredJob(clock)
    with SteeredFlink(job) as flink, FlinkRest(flink.url) as rest:
        sensor = Sensor(rest, job.id, frozenset(), clock)
        before = sensor.look()
        sensor.meter(before)
        job.finished = {SINK: 1}
        clock.sleep(10.0)
        ended, after = sensor.look(), sensor.look()
    assert [sight.ended for sight in (before, ended, after)] == [(), ("out",), ()]
    assert set(after.tasks) == {"clicks", "count"}


def test_a_round_without_the_growth_of_the_lag_is_not_measured_but_the_next_one_is_whole() -> None:
    """The source reads 584 of the 2,500 records/s that arrive. In the second round it does not report its lag."""
    clock = SimulatedClock()
    job = SteeredJob(clock, tasks={SOURCE: 1, COUNT: 1, SINK: 1}, rate=lambda t: 2500.0, per_task=584.0)
    with SteeredFlink(job) as flink, FlinkRest(flink.url) as rest:
        sensor = Sensor(rest, job.id, frozenset(), clock)

        def look(reports_lag: bool) -> Sight:
            job.reports_lag = reports_lag
            clock.sleep(10.0)
            return sensor.look()

        look(True)
        unread, whole = look(False), look(True)
    assert unread.activity is None
    assert unread.fault == "it is unknown by how much the lag grew of clicks, since not all of its tasks report it"
    assert whole.fault is None and whole.activity is not None
    assert whole.activity.seconds == pytest.approx(20.0)
    assert whole.activity.arrival_rate == pytest.approx(2500.0)
