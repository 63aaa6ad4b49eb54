"""A real Flink on this machine: two TaskManagers of four slots, on which jobs are run, changed and broken."""

import math
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest
import yaml

from flink_client.jobs.deployment import RunningJob
from flink_client.jobs.running import NotRunning, running_job
from flink_client.metrics.readings import TIMES
from flink_client.rest.answers import JobStatus
from flink_client.rest.client import FlinkRest
from flink_client.rest.jars import JarProgram
from flink_client.rest.jobs import resource_requirements
from flink_client.rest.waiting import wait_for
from models.errors import InvalidInput, SluiceError
from models.job import Job
from testbeds.feeding.control import SourceControl, SourceReport
from testbeds.flink.local.processes import LocalCluster
from testbeds.flink.local.profile import Profile, TaskManager
from testbeds.flink.programs.stated_costs import (
    UNCHAINED,
    Payment,
    dataflow_program,
    program_of,
    whole_script,
)

pytestmark = pytest.mark.slow
PROFILE = Profile((TaskManager("tm1", 4, 900, cores=1.0), TaskManager("tm2", 4, 900, cores=1.0)))
START_S = 60.0


@pytest.fixture(scope="module")
def cluster() -> Iterator[LocalCluster]:
    with LocalCluster() as made:
        made.ensure(PROFILE)
        yield made


@pytest.fixture(scope="module")
def jar(cluster: LocalCluster) -> str:
    return cluster.rest.upload(cluster.kit)


@pytest.fixture
def control() -> Iterator[SourceControl]:
    with SourceControl() as made:
        yield made


@pytest.fixture
def rest(cluster: LocalCluster) -> FlinkRest:
    return cluster.rest


@pytest.fixture
def start(cluster: LocalCluster, jar: str) -> Iterator[Callable[..., tuple[str, JobStatus]]]:
    """Run a program and wait for its tasks; what still runs at the end is cancelled."""
    rest, started = cluster.rest, []

    def run(program: JarProgram, savepoint: str | None = None) -> tuple[str, JobStatus]:
        job = rest.run(jar, program, savepoint=savepoint)
        started.append(job)
        return job, rest.wait_until_running(job, START_S)

    yield run
    cluster.placement_file.write_text("")
    for job in started:
        rest.cancel(job)


@pytest.fixture
def wordcount(root: Path) -> Job:
    return Job.model_validate(yaml.safe_load((root / "jobs" / "wordcount.yaml").read_text()))


def _nexmark(root: Path, query: str, control: SourceControl, *, slot_per_task: bool = False) -> JarProgram:
    script = whole_script((root / "jobs" / f"nexmark-{query}.sql").read_text(), control.address, seed=1)
    return _sql_program(query, script, UNCHAINED, slot_per_task=slot_per_task)


def _sql_program(name: str, script: str, settings: Mapping[str, str], *, slot_per_task: bool) -> JarProgram:
    return program_of({"name": name, "sql": script, "slot_per_task": slot_per_task}, settings)


def _report(control: SourceControl, order: str, seconds: float, pending: float = math.inf) -> SourceReport:
    """The first report of the only source task that comes so long after an order, with so few records pending."""

    def late_enough() -> SourceReport | None:
        found = control.reports("events").get(0)
        if found is None or found.order != order or found.seconds < seconds or found.pending > pending:
            return None
        return found

    return wait_for(late_enough, 30, f"a report {seconds:g} s after order {order}", pause_s=0.02)


def test_the_cluster_is_what_was_asked_for_and_stays_while_that_does(cluster: LocalCluster) -> None:
    found = sorted(cluster.rest.task_managers(), key=lambda one: one.id)
    assert [(one.id, one.slots) for one in found] == [("tm1", 4), ("tm2", 4)]
    assert found[0].managed_memory_bytes == pytest.approx(0.4 * (900 - 256 - 192) * 2**20, rel=0.01)
    assert cluster.rest.flink_version() == "1.20.5"
    before = cluster.rest.url
    cluster.ensure(PROFILE)
    assert cluster.rest.url == before
    cluster.check()


def test_the_rate_of_a_running_query_follows_orders(
    root: Path, control: SourceControl, start: Callable[..., tuple[str, JobStatus]], rest: FlinkRest
) -> None:
    _, status = start(_nexmark(root, "q1", control))
    assert [v.name.split("[")[0] for v in status.vertices] == ["Source: events", "Calc", "converted_bids"]
    for rate in (2000.0, 20_000.0):
        order = control.offer({"events": rate})
        settled = _report(control, order, 2.0, pending=0.04 * rate)
        assert settled.emitted + settled.pending == pytest.approx(rate * settled.seconds, rel=0.01)
    order = control.offer({"events": 1e8})
    overloaded = _report(control, order, 1.0)
    assert overloaded.emitted + overloaded.pending == pytest.approx(1e8 * overloaded.seconds, rel=0.01)
    assert overloaded.pending > 0


@pytest.mark.parametrize("query", ["q2", "q3", "q5", "q8", "q11"])
def test_the_other_queries_are_accepted(
    root: Path, control: SourceControl, rest: FlinkRest, jar: str, query: str
) -> None:
    vertices, edges = rest.plan(jar, _nexmark(root, query, control, slot_per_task=True))
    assert len(vertices) >= 3 and len(edges) >= len(vertices) - 1
    assert any(e.ship_strategy == "HASH" for e in edges) == (query != "q2")


def test_a_job_whose_side_input_has_finished_runs_and_is_rescaled(
    tmp_path: Path, control: SourceControl, start: Callable[..., tuple[str, JobStatus]], rest: FlinkRest
) -> None:
    (tmp_path / "clicks.jsonl").write_text("".join(f'{{"who": {i}}}\n' for i in range(100)))
    script = f"""
    CREATE TABLE clicks (who BIGINT)
    WITH ('connector' = 'sluice', 'control' = '{control.address}', 'path' = '{tmp_path}/clicks.jsonl', 'format' = 'json');
    CREATE TABLE rules (who BIGINT) WITH ('connector' = 'datagen',
        'fields.who.kind' = 'sequence', 'fields.who.start' = '0', 'fields.who.end' = '49');
    CREATE TABLE found (who BIGINT) WITH ('connector' = 'blackhole');
    INSERT INTO found SELECT clicks.who FROM clicks JOIN rules ON clicks.who = rules.who;
    """
    id_, _ = start(_sql_program("rules", script, UNCHAINED, slot_per_task=True))
    control.offer({"clicks": 500.0})

    def with_rules_done() -> RunningJob | None:
        try:
            job = running_job(rest, id_)
        except NotRunning:
            return None
        return job if any("rules" in v.name and v.is_done for v in job.vertices) else None

    before = wait_for(with_rules_done, 60, "the end of the rules")
    (rules,) = (v for v in before.vertices if v.is_done)
    (join,) = (v for v in before.vertices if "Join" in v.name)
    assert rest.job(id_).all_running
    path, wanted = f"/jobs/{id_}/resource-requirements", {join.id: join.parallelism + 1}
    rest.put(path, rest.get(path) | resource_requirements(wanted))
    rest.wait_until_running(id_, START_S, wanted)
    after = wait_for(with_rules_done, 60, "the end of the rules after the rescale")
    assert after.vertex(join.id).parallelism == 2 and after.vertex(rules.id).is_done


def test_recorded_events_are_replayed(
    tmp_path: Path, control: SourceControl, start: Callable[..., tuple[str, JobStatus]], rest: FlinkRest
) -> None:
    (tmp_path / "clicks.jsonl").write_text("".join(f'{{"who": {i}, "at_ms": {i * 1000}}}\n' for i in range(100)))
    script = f"""
    CREATE TABLE clicks (who BIGINT, at_ms BIGINT, t AS TO_TIMESTAMP_LTZ(at_ms, 3), WATERMARK FOR t AS t)
    WITH ('connector' = 'sluice', 'control' = '{control.address}', 'path' = '{tmp_path}/clicks.jsonl',
          'format' = 'json', 'time-column' = 'at_ms');
    CREATE TABLE counts (n BIGINT) WITH ('connector' = 'blackhole');
    INSERT INTO counts SELECT COUNT(*) FROM clicks GROUP BY TUMBLE(t, INTERVAL '1' SECOND);
    """
    job, status = start(_sql_program("clicks", script, UNCHAINED, slot_per_task=False))
    control.offer({"clicks": 500.0})
    names = [v.name.split("[")[0] for v in status.vertices]
    window = status.vertices[next(i for i, name in enumerate(names) if "WindowAggregate" in name)].id

    def fired() -> bool | None:
        (metrics,) = rest.vertex_metrics(job, window, ["numRecordsIn", "numRecordsOut"], tasks=1)
        return (metrics.get("numRecordsIn", 0) >= 500 and metrics.get("numRecordsOut", 0) >= 1) or None

    wait_for(fired, 30, "a window of replayed events")


def test_tasks_run_where_they_are_placed_and_a_rescale_keeps_to_it(
    cluster: LocalCluster,
    wordcount: Job,
    control: SourceControl,
    start: Callable[..., tuple[str, JobStatus]],
    rest: FlinkRest,
    jar: str,
) -> None:
    tasks = {"source": 1, "flatmap": 2, "count": 3}
    program = dataflow_program(wordcount, tasks, control.address, {}, payment=Payment.PACED)
    ids = {v.name.removeprefix("Source: "): v.id for v in rest.plan(jar, program)[0]}
    plan = {("source", 0): "tm2", ("flatmap", 0): "tm2", ("flatmap", 1): "tm2", ("count", 0): "tm2"}
    plan |= {("count", 1): "tm1", ("count", 2): "tm1", ("count", 3): "tm1"}
    cluster.placement_file.write_text("slots 8\n" + "".join(f"{ids[o]} {i} {w}\n" for (o, i), w in plan.items()))
    job, _ = start(program)

    def where() -> dict[tuple[str, int], str]:
        return {(o, one.index): one.task_manager for o, v in ids.items() for one in rest.subtasks(job, v)}

    assert where() == {task: worker for task, worker in plan.items() if task != ("count", 3)}
    rest.require(job, {ids["count"]: 4})
    rest.wait_until_running(job, START_S, {ids["count"]: 4})
    assert where() == plan


def test_limited_operators_take_what_ds2_says(
    cluster: LocalCluster, wordcount: Job, control: SourceControl, start: Callable[..., tuple[str, JobStatus]]
) -> None:
    """DS2 section 5.2: a FlatMap takes 100 000 sentences a minute, and 2 Count the 2 M words of these."""
    tasks = {"source": 1, "flatmap": 1, "count": 2}
    program = dataflow_program(wordcount, tasks, control.address, {}, payment=Payment.PACED)
    job, status = start(program)
    control.offer({"source": 10_000.0})
    expected = {"flatmap": 100_000 / 60, "count": 2_000_000 / 60}
    for _ in range(10):  # a machine that is busy with other things is slower at times, and never faster
        rates = _rates_in(cluster.rest, job, status, seconds=4.0)
        if all(rates[name] >= 0.9 * rate for name, rate in expected.items()):
            break
    assert rates == pytest.approx(expected, rel=0.1)


def _rates_in(rest: FlinkRest, job: str, status: JobStatus, seconds: float) -> dict[str, float]:
    """Records/s into each vertex, from a refresh of Flink's metrics to one that long after it, by the clock of its tasks."""
    seen: dict[str, list[tuple[float, float]]] = {v.name: [] for v in status.vertices[1:]}

    def long_enough() -> bool | None:
        for v in status.vertices[1:]:
            tasks = rest.vertex_metrics(job, v.id, ["numRecordsIn", *TIMES], v.parallelism)
            total = sum(task.get("numRecordsIn", 0.0) for task in tasks)
            if total > (seen[v.name][-1][1] if seen[v.name] else 0.0):
                ran_s = sum(task.get(name, 0.0) for task in tasks for name in TIMES) / 1000 / v.parallelism
                seen[v.name].append((ran_s, total))
        return all(len(s) > 2 and s[-1][0] - s[1][0] >= seconds for s in seen.values()) or None

    wait_for(long_enough, seconds + 30, "refreshed metrics", pause_s=0.02)
    return {name: (s[-1][1] - s[1][1]) / (s[-1][0] - s[1][0]) for name, s in seen.items()}


def test_a_savepoint_goes_on_in_the_sequence_of_events_with_other_tasks(
    cluster: LocalCluster, wordcount: Job, control: SourceControl, start: Callable[..., tuple[str, JobStatus]]
) -> None:
    def program(tasks: int) -> JarProgram:
        parallelism = {"source": tasks, "flatmap": 1, "count": 1}
        return dataflow_program(wordcount, parallelism, control.address, {}, payment=Payment.PACED)

    def pending() -> int:
        return sum(report.pending for report in control.reports("source").values())

    control.fill({"source": 0.0}, {"source": 1000.0})
    job, _ = start(program(1))
    wait_for(lambda: (bool(control.reports("source")) and pending() == 0) or None, 30, "all events to be read")
    savepoint = cluster.rest.savepoint(job, (cluster.folder / "savepoints").as_uri(), cancel=True)
    wait_for(lambda: control.tasks("source") == 0 or None, 30, "the source to leave")
    control.fill({"source": 0.0}, {"source": 1100.0})
    start(program(3), savepoint)
    wait_for(lambda: (len(control.reports("source")) == 3 and pending() == 0) or None, 30, "the rest to be read")
    assert sum(report.emitted_in_all for report in control.reports("source").values()) == 100


def test_wrong_sql_is_reported_in_flinks_words(rest: FlinkRest, jar: str) -> None:
    with pytest.raises(InvalidInput, match="nowhere"):
        rest.run(jar, _sql_program("wrong", "INSERT INTO nowhere SELECT 1", {}, slot_per_task=False))
    with pytest.raises(InvalidInput, match="must hold an INSERT"):
        rest.run(jar, _sql_program("none", "CREATE VIEW v AS SELECT 1", {}, slot_per_task=False))


def test_a_placement_that_does_not_fit_fails_the_job_and_not_the_cluster(
    cluster: LocalCluster, wordcount: Job, control: SourceControl, rest: FlinkRest, jar: str
) -> None:
    program = dataflow_program(
        wordcount, {"source": 1, "flatmap": 1, "count": 1}, control.address, {}, payment=Payment.PACED
    )
    source = rest.plan(jar, program)[0][0].id
    cluster.placement_file.write_text(f"slots 8\n{source} 0 tm9\n")
    try:
        with pytest.raises(SluiceError, match="TaskManager tm9, which has no slot left"):
            rest.wait_until_running(rest.run(jar, program), START_S)
    finally:
        cluster.placement_file.write_text("")
    cluster.check()


def test_a_task_manager_that_dies_fails_the_job_and_is_reported(
    cluster: LocalCluster, root: Path, control: SourceControl, jar: str
) -> None:
    """Last in this file: it breaks the cluster."""
    job = cluster.rest.run(jar, _nexmark(root, "q1", control, slot_per_task=True))
    cluster.rest.wait_until_running(job, START_S)
    for victim in ("tm1", "tm2"):
        cluster.kill(victim)
    wait_for(lambda: cluster.rest.job(job).state != "RUNNING" or None, 40, "the job to fail")
    with pytest.raises(SluiceError, match="process tm1 ended with code -9"):
        cluster.check()
