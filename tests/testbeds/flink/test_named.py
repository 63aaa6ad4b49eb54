"""A cluster that runs already, named by its address: a user's SQL, a user's jar, REST and Prometheus to measure by."""

import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import pyarrow.compute as pc
import pytest

from answering.server import AnsweringServer
from flink.rated_programs import JAR, SCRIPT, clicks_script, made_jar
from flink_client.address import FlinkAddress
from flink_client.rest.client import FlinkRest
from flink_client.rest.waiting import wait_for
from models.errors import Infeasible, InvalidInput, SluiceError
from models.job import Job
from servers.prometheus import reporter, running_prometheus
from testbeds.flink.feeding.recordings import recording
from testbeds.flink.local.distribution import FLINK
from testbeds.flink.local.processes import LocalCluster
from testbeds.flink.local.profile import Profile, TaskManager
from testbeds.flink.named import NamedCluster
from testbeds.flink.named_testbed import NamedFlinkTestbed
from testbeds.flink.programs.user_programs import SqlScript, UserJar, UserProgram
from testbeds.local.machine import free_port
from testbeds.protocol import Configuration, MeasuredWindow, Run
from testbeds.repeating import measured

pytestmark = pytest.mark.slow
GUIDE = Path(__file__).parents[3] / "docs" / "how-to" / "measure-on-flink.md"
RATE = 2000.0
DATING = 0.15
"""Share of a window of 5 s by which its readings may be early or late, on a machine that runs other tests."""


_MEASURING = """
import sys, time
from pathlib import Path
from flink_client.address import FlinkAddress
from pipelines.measuring.flink import opened_flink
from pipelines.progress import Quiet
from testbeds.flink.feeding.recordings import recording
from testbeds.flink.programs.user_programs import SqlScript
from testbeds.protocol import Configuration

url, script, recorded = sys.argv[1:]
program = SqlScript(Path(script).read_text(), {"clicks": recording(Path(recorded))}, keep_sinks=False)
with opened_flink(program, Quiet(), FlinkAddress(rest_url=url)) as testbed:
    job = testbed.dataflow("clicks")
    configuration = Configuration({o.name: 1 for o in job.operators}, testbed.limits.memory_levels_mb[0])
    with testbed.deploy(job, configuration, run="r", seed=1) as run:
        print("measuring", flush=True)
        run.inject(1000.0, 600.0, "observe")
"""


@pytest.fixture(scope="module")
def reporter_port() -> int:
    return free_port()


@pytest.fixture(scope="module")
def cluster(reporter_port: int) -> Iterator[LocalCluster]:
    """The user's: it knows of no testbed."""
    settings = reporter(reporter_port)
    with LocalCluster() as made:
        made.ensure(Profile((TaskManager("worker:1", 4, 900), TaskManager("worker:2", 5, 900)), settings))
        yield made


@pytest.fixture(scope="module")
def prometheus(cluster: LocalCluster, reporter_port: int, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of one that scrapes the cluster every second."""
    with running_prometheus(tmp_path_factory.mktemp("prometheus"), reporter_port, task_managers=2) as url:
        yield url


@pytest.fixture(scope="module")
def clicks(tmp_path_factory: pytest.TempPathFactory) -> SqlScript:
    return clicks_script(tmp_path_factory.mktemp("recorded"))


@pytest.fixture(scope="module")
def jar(kit: Path, flink: Path, jdk: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return made_jar(JAR, "Remainders", tmp_path_factory.mktemp("jar"), kit, flink, jdk)


def _named(cluster: LocalCluster, program: UserProgram, prometheus: str | None = None) -> NamedFlinkTestbed:
    address = FlinkAddress(rest_url=cluster.rest.url, prometheus_url=prometheus)
    return NamedFlinkTestbed(address, program=program, warm_up_s=0.0)


def _window(
    testbed: NamedFlinkTestbed,
    job: Job,
    tasks: dict[str, int] | None = None,
    enough: Callable[[MeasuredWindow], bool] = lambda _: True,
) -> MeasuredWindow:
    """A window of a few seconds; measured again if the machine was too busy, or state was not reported: that happens at
    most every five seconds, and one access in a hundred is timed."""
    parallelism = {o.name: 1 for o in job.operators} | (tasks or {})
    configuration = Configuration(parallelism, testbed.limits.memory_levels_mb[0])

    def observed(run: Run) -> MeasuredWindow:
        run.inject(RATE, 10.0, "ramp")  # what waited while code was cold is worked off
        for _ in range(8):
            window = run.inject(RATE, 5.0, "observe")
            if window.achieved_rate > 0.95 * RATE and enough(window):
                break
        return window

    return measured(testbed, job, configuration, observed, run="r", seed=1, say=print)


def _total(window: MeasuredWindow, operator: str, column: str) -> float:
    return float(pc.sum(window.samples.filter(pc.field("operator") == operator)[column]).as_py())


def _has_state(window: MeasuredWindow) -> bool:
    latency = window.samples.filter(pc.field("operator") == "group-window-aggregate")["state_latency_s"]
    return latency.null_count == 0 and _total(window, "group-window-aggregate", "state_written_bytes") > 0


def _nothing_is_left(rest: FlinkRest) -> bool:
    running = [one for one in rest.get("/jobs/overview")["jobs"] if one["state"] in ("RUNNING", "CANCELLING")]
    return not running and not rest.get("/jars")["files"]


def test_a_users_sql_is_measured_with_a_parquet_file_for_its_table(cluster: LocalCluster, clicks: SqlScript) -> None:
    with _named(cluster, clicks) as testbed:
        assert [(w.name, w.slots) for w in testbed.cluster.workers] == [("worker-1", 4), ("worker-2", 5)]
        assert testbed.limits.max_task_slots == 6 and testbed.limits.memory_levels_mb == (900.0,)
        job = testbed.dataflow("clicks")
        assert job.order == ("clicks", "calc", "group-window-aggregate", "counts")
        window = _window(testbed, job, {"calc": 2, "group-window-aggregate": 2}, _has_state)
    assert window.achieved_rate == pytest.approx(RATE, rel=0.05)
    assert _total(window, "calc", "records_in") == pytest.approx(5 * RATE, rel=DATING)
    # Event time goes on although the file is replayed: each second's 50 pages leave the window.
    assert _total(window, "group-window-aggregate", "records_in") == pytest.approx(5 * RATE * 0.9, rel=DATING)
    assert 100 <= _total(window, "group-window-aggregate", "records_out") <= 400
    assert _total(window, "group-window-aggregate", "state_written_bytes") > 0
    latency = window.samples.filter(pc.field("operator") == "group-window-aggregate")["state_latency_s"]
    assert latency.null_count == 0 and 0 < pc.max(latency).as_py() < 0.1
    workers = set(window.samples["worker"].to_pylist())
    assert workers <= {"worker:1", "worker:2"}
    assert _nothing_is_left(cluster.rest)


def test_prometheus_has_the_same_values(cluster: LocalCluster, clicks: SqlScript, prometheus: str) -> None:
    with _named(cluster, clicks, prometheus) as testbed:
        window = _window(testbed, testbed.dataflow("clicks"), enough=_has_state)
    assert window.achieved_rate == pytest.approx(RATE, rel=0.05)
    assert _total(window, "calc", "records_in") == pytest.approx(5 * RATE, rel=DATING)
    assert _total(window, "group-window-aggregate", "records_in") == pytest.approx(5 * RATE * 0.9, rel=DATING)
    assert _total(window, "group-window-aggregate", "state_written_bytes") > 0
    shares = sum(_total(window, "calc", name) for name in ("busy_s", "idle_s", "backpressured_s"))
    assert shares == pytest.approx(5.0, rel=0.01)
    latency = window.samples.filter(pc.field("operator") == "group-window-aggregate")["state_latency_s"]
    assert 0 < pc.max(latency).as_py() < 0.1
    assert _total(window, "clicks", "cpu_s") > 0


def test_a_users_jar_is_measured(cluster: LocalCluster, jar: Path) -> None:
    with _named(cluster, UserJar(jar, "example.Remainders", ("4",))) as testbed:
        job = testbed.dataflow("remainders")
        assert [o.name for o in job.sources] == ["numbers"] and len(job.operators) == 4
        divisible, total = job.order[1:3]
        window = _window(testbed, job, {total: 2})
    assert window.achieved_rate == pytest.approx(RATE, rel=0.05)
    assert _total(window, divisible, "records_in") == pytest.approx(5 * RATE, rel=DATING)
    assert _total(window, total, "records_in") == pytest.approx(5 * RATE / 4, rel=DATING)
    assert len(set(window.samples.filter(pc.field("operator") == total)["task"].to_pylist())) == 2
    assert _nothing_is_left(cluster.rest)


def test_the_programs_of_the_guide_are_read(
    cluster: LocalCluster, kit: Path, flink: Path, jdk: Path, tmp_path: Path
) -> None:
    guide = GUIDE.read_text()
    (tmp_path / "clicks.jsonl").write_text('{"page": "/", "visitor": 1, "clicked": "2026-05-01T12:00:00.000"}\n')
    script = SqlScript(_example("sql", guide), {"clicks": recording(tmp_path / "clicks.jsonl")}, keep_sinks=False)
    jar = made_jar(_example("java", guide), "WordLengths", tmp_path, kit, flink, jdk)
    for program, operators in [
        (script, ["clicks", "calc-1", "local-window-aggregate", "global-window-aggregate", "calc-2", "page_counts"]),
        (
            UserJar(jar, "example.WordLengths", ("--shortest", "3")),
            ["words", "long-words", "lengths", "counts", "nowhere"],
        ),
    ]:
        with _named(cluster, program) as testbed:
            assert list(testbed.dataflow("guide").order) == operators


def _example(language: str, guide: str) -> str:
    """The guide's first program in a language."""
    found = re.search(rf"^```{language}\n(.*?)^```", guide, re.DOTALL | re.MULTILINE)
    assert found is not None
    return found.group(1)


def test_a_program_that_cannot_be_measured_is_refused_with_the_reason(
    cluster: LocalCluster, clicks: SqlScript, jar: Path
) -> None:
    unrated = (
        "CREATE TABLE t (a INT) WITH ('connector' = 'datagen'); CREATE TABLE s (a INT) WITH ('connector' = 'print');"
    )
    wrong: list[tuple[UserProgram, str]] = [
        (UserJar(jar, "example.Remainders", ("0",)), "make it with sluice.Rated"),
        (UserJar(jar, "example.Unknown"), "must hold a class example.Unknown"),
        (SqlScript(unrated + "INSERT INTO s SELECT a FROM t;"), "rate of every source must be set"),
        (SqlScript(unrated + "INSERT INTO s SELECT a FROM t;", clicks.recordings), r"it has no \[clicks\]"),
        (SqlScript(SCRIPT, {}), "kafka"),
    ]
    for program, reason in wrong:
        with _named(cluster, program) as testbed, pytest.raises(InvalidInput, match=reason):
            testbed.dataflow("wrong")


def test_what_the_cluster_has_not_is_refused(cluster: LocalCluster, clicks: SqlScript) -> None:
    with _named(cluster, clicks) as testbed:
        job = testbed.dataflow("clicks")
        one = {o.name: 1 for o in job.operators}
        for configuration, error, reason in [
            (Configuration(one | {"calc": 7}, 900.0), Infeasible, "10 tasks .* has 9; measure with fewer"),
            (Configuration(one, 1800.0), Infeasible, "have 900 MiB, which cannot be changed"),
            (Configuration(one, 900.0, {"worker-1": {"calc": 1}}), InvalidInput, "Flink places the tasks"),
        ]:
            with pytest.raises(error, match=reason):
                testbed.deploy(job, configuration, run="r", seed=1)
    assert _nothing_is_left(cluster.rest)


def test_a_prometheus_that_scrapes_others_is_refused(cluster: LocalCluster, clicks: SqlScript, prometheus: str) -> None:
    from flink_client.metrics.prometheus import PrometheusReadings

    with pytest.raises(InvalidInput, match="has 0 samples of 'worker:3'"):
        PrometheusReadings(prometheus, "job", ["worker:1", "worker:3"])
    with pytest.raises(SluiceError, match="refuses the query: status 404"):
        PrometheusReadings(cluster.rest.url, "job", ["worker:1"])


@pytest.mark.parametrize("version", ["1.17.2", "1.21.0", "2.2.1", "2.30.0", "next"])
def test_an_address_that_is_no_flink_of_these_versions_is_refused(version: str) -> None:
    with (
        AnsweringServer(lambda request, body: (200, {"flink-version": version})) as server,
        pytest.raises(InvalidInput, match=rf"must run version 1\.20 or 2\.3, but .* runs {re.escape(version)}"),
    ):
        NamedFlinkTestbed(FlinkAddress(rest_url=server.url))


def test_sigterm_leaves_neither_job_nor_jar_on_the_cluster(
    cluster: LocalCluster, clicks: SqlScript, tmp_path: Path
) -> None:
    """As `sluice plan` in a shell, and a task that Airflow ends."""
    recorded = clicks.recordings["clicks"].path
    (tmp_path / "script.sql").write_text(SCRIPT)
    command = [sys.executable, "-c", _MEASURING, cluster.rest.url, str(tmp_path / "script.sql"), str(recorded)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None and process.stdout.readline() == "measuring\n"
        assert len(cluster.rest.jars()) == 1 and not _nothing_is_left(cluster.rest)
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 128 + signal.SIGTERM
    finally:
        process.kill()
        process.wait()
        process.stdout.close()  # type: ignore[union-attr]
    assert _nothing_is_left(cluster.rest)


def test_what_a_killed_process_left_is_removed_by_the_next_one(
    cluster: LocalCluster, clicks: SqlScript, tmp_path: Path
) -> None:
    (tmp_path / "script.sql").write_text(SCRIPT)
    recorded = clicks.recordings["clicks"].path
    command = [sys.executable, "-c", _MEASURING, cluster.rest.url, str(tmp_path / "script.sql"), str(recorded)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None and process.stdout.readline() == "measuring\n"
    finally:
        process.kill()
        process.wait()
        process.stdout.close()  # type: ignore[union-attr]
    assert len(cluster.rest.jars()) == 1 and not _nothing_is_left(cluster.rest)
    said: list[str] = []
    NamedCluster(FlinkAddress(rest_url=cluster.rest.url), lambda what, share: said.append(what)).close()
    assert said == ["removed what a killed measurement left there: 1 jobs, 1 jars"]
    wait_for(lambda: _nothing_is_left(cluster.rest) or None, 30, "the end of the job")


def test_a_jar_whose_upload_was_interrupted_is_removed(tmp_path: Path) -> None:
    """And no jar of another user, though it has the same name."""
    jars, deleted = ["1_kit.jar"], []

    def answer(request: BaseHTTPRequestHandler, body: bytes) -> tuple[int, object]:
        if request.path == "/config":
            return 200, {"flink-version": FLINK.version}
        if request.command == "POST":
            (name,) = re.findall(rb'filename="(.+?)"', body)
            jars.append(f"2_{name.decode()}")
            return 500, {"errors": ["cut off"]}
        if request.command == "DELETE":
            deleted.append(request.path.rpartition("/")[2])
            return 200, {}
        return 200, {"files": [{"id": id_} for id_ in jars]}

    (tmp_path / "kit.jar").write_bytes(b"PK")
    with AnsweringServer(answer) as server:
        named = NamedCluster(FlinkAddress(rest_url=server.url))
        with pytest.raises(SluiceError, match="cut off"):
            named.uploaded(tmp_path / "kit.jar")
        named.close()
    assert deleted == jars[1:]


def test_a_job_that_a_killed_process_left_ends_by_itself(
    cluster: LocalCluster, clicks: SqlScript, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("testbeds.flink.named_testbed.LEASE_S", 1.0)
    with _named(cluster, clicks) as testbed:
        job = testbed.dataflow("clicks")
        run = testbed.deploy(job, Configuration({o.name: 1 for o in job.operators}, 900.0), run="r", seed=1)
        (id_,) = [one["jid"] for one in cluster.rest.get("/jobs/overview")["jobs"] if one["state"] == "RUNNING"]
        run._control.close()
        until = time.monotonic() + 30
        while cluster.rest.job(id_).state != "FAILED":
            assert time.monotonic() < until
            time.sleep(0.1)
        assert "no controller at" in (cluster.rest.failure(id_) or "")
