"""Clusters of each release that are named by their address: the conformance suites, and programs of users.

What is particular to a cluster that Sluice has not started is in test_named.py, on the default release; the suites on that
release are marked `long`.
"""

from collections.abc import Iterator
from pathlib import Path

import pyarrow.compute as pc
import pytest

from flink.conformance import OneRun, OnFlink
from flink.rated_programs import JAR, TABLE_JAR, clicks_script, made_jar
from flink.releases import NEWEST_IN_CI
from flink_client.address import FlinkAddress
from flink_client.overrides import ignored_at_start
from flink_client.rest.client import FlinkRest
from flink_client.rest.jars import JarProgram
from models.errors import InvalidInput
from models.job import Job
from testbeds import conformance, elastic_conformance, protocol
from testbeds.feeding.control import SourceControl
from testbeds.flink.local.distribution import Release, flink_home
from testbeds.flink.local.processes import LocalCluster
from testbeds.flink.local.profile import Profile, TaskManager
from testbeds.flink.named_testbed import NamedFlinkTestbed
from testbeds.flink.programs.user_programs import SqlScript, UserJar, UserProgram
from testbeds.local.jdk import find_jdk
from testbeds.protocol import Configuration, MeasuredWindow
from testbeds.suite import saturated_rate

pytestmark = pytest.mark.slow
MEMORY_MB = 1024.0
RATE = 2000.0
DATING = 0.15
"""Share of a window of 5 s by which its readings may be early or late, on a machine that runs other tests."""


@pytest.fixture(scope="module", params=NEWEST_IN_CI)
def release(request: pytest.FixtureRequest) -> Release:
    found = request.param
    assert isinstance(found, Release)
    return found


@pytest.fixture(scope="module")
def cluster(release: Release) -> Iterator[LocalCluster]:
    """The user's: it knows of no testbed."""
    with LocalCluster(release=release) as made:
        made.ensure(Profile(tuple(TaskManager(f"worker-{i}", 6, MEMORY_MB) for i in (1, 2))))
        yield made


@pytest.fixture(scope="module")
def named(cluster: LocalCluster) -> Iterator[NamedFlinkTestbed]:
    with NamedFlinkTestbed(FlinkAddress(rest_url=cluster.rest.url)) as made:
        yield made


class OnNamed(OnFlink):
    places_tasks = False

    @pytest.fixture(scope="class")
    @classmethod
    def testbed(cls, named: NamedFlinkTestbed) -> protocol.Testbed:
        return named


class TestNamed(OneRun, OnNamed, conformance.RefusalConformance, conformance.SampleConformance):
    settle_s = 20.0


class TestNamedRuns(OnNamed, conformance.RunConformance, conformance.SourceConformance):
    """How runs end."""


@pytest.mark.long
class TestNamedRates(OnNamed, conformance.RateConformance):
    settle_s = 10.0


class TestNamedElasticBriefly(OnNamed, elastic_conformance.ElasticSuite):
    """What breaks first, if anything does."""

    catch_up_s = 10.0
    test_lag_grows_while_the_job_is_down_and_is_caught_up = (
        elastic_conformance.RescaleConformance.test_lag_grows_while_the_job_is_down_and_is_caught_up
    )

    @pytest.fixture
    def rate(self) -> float:
        """A quarter of what one task of `count` takes: 2e-4 s for every second record."""
        return 10_000.0 / 4


@pytest.mark.long
class TestNamedElastic(OnNamed, elastic_conformance.ElasticConformance):
    """All of it; windows are a sixth as long as on the simulator."""

    settle_s = 10.0

    @pytest.fixture(scope="class")
    @classmethod
    def rate(cls, testbed: protocol.Testbed, job: Job, configuration: Configuration) -> float:
        with testbed.deploy(job, configuration, run="conformance-2", seed=1) as deployed:
            return saturated_rate(deployed, cls.settle_s) / 4


@pytest.fixture(scope="module")
def clicks(tmp_path_factory: pytest.TempPathFactory) -> SqlScript:
    return clicks_script(tmp_path_factory.mktemp("recorded"))


@pytest.fixture(scope="module")
def jar(cluster: LocalCluster, release: Release, tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = flink_home(release=release)
    return made_jar(JAR, "Remainders", tmp_path_factory.mktemp("jar"), cluster.kit, home, find_jdk())


@pytest.fixture(scope="module")
def table_jar(cluster: LocalCluster, release: Release, tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = flink_home(release=release)
    return made_jar(TABLE_JAR, "TableRemainders", tmp_path_factory.mktemp("jar"), cluster.kit, home, find_jdk())


def _testbed(cluster: LocalCluster, program: UserProgram) -> NamedFlinkTestbed:
    return NamedFlinkTestbed(FlinkAddress(rest_url=cluster.rest.url), program=program, warm_up_s=0.0)


def _window(testbed: NamedFlinkTestbed, job: Job, **tasks: int) -> MeasuredWindow:
    """A window of 5 s; measured again if the machine was too busy."""
    configuration = Configuration({o.name: 1 for o in job.operators} | tasks, MEMORY_MB)
    with testbed.deploy(job, configuration, run="r", seed=1) as run:
        for _ in range(8):
            window = run.inject(RATE, 5.0, "observe")
            if window.achieved_rate > 0.95 * RATE:
                break
    return window


def _records_in(window: MeasuredWindow, operator: str) -> float:
    return float(pc.sum(window.samples.filter(pc.field("operator") == operator)["records_in"]).as_py())


def _left_there(rest: FlinkRest) -> list[str]:
    """Jobs that run, and jars."""
    running = [one["jid"] for one in rest.get("/jobs/overview")["jobs"] if one["state"] in ("RUNNING", "CANCELLING")]
    return running + sorted(one["id"] for one in rest.get("/jars")["files"])


def test_the_kit_is_of_the_clusters_release(cluster: LocalCluster, release: Release, clicks: SqlScript) -> None:
    assert cluster.rest.flink_version() == release.version
    with _testbed(cluster, clicks) as testbed:
        assert testbed._named.kit == cluster.kit


def test_flink_heeds_overrides_at_the_start_of_a_program_as_far_as_is_known(
    cluster: LocalCluster, release: Release, jar: Path
) -> None:
    """FLINK-38770, which `ignored_at_start` knows the releases of."""
    rest = cluster.rest
    with SourceControl() as control:
        program = JarProgram("example.Remainders", ("4",), {"sluice.control": control.address})
        uploaded = rest.upload(jar)
        wanted = {vertex.id: 2 for vertex in rest.plan(uploaded, program)[0]}
        job = rest.run(uploaded, program.with_parallelism(wanted))
        try:
            rest.wait_until_running(job, 60.0)
            heeded = rest.requirements(job) == wanted
        finally:
            rest.cancel(job)
            rest.delete_jar(uploaded)
    assert heeded is (ignored_at_start(release.version) is None)


def test_a_users_sql_is_measured(cluster: LocalCluster, clicks: SqlScript) -> None:
    with _testbed(cluster, clicks) as testbed:
        job = testbed.dataflow("clicks")
        assert job.order == ("clicks", "calc", "group-window-aggregate", "counts")
        window = _window(testbed, job)
    assert window.achieved_rate == pytest.approx(RATE, rel=0.05)
    assert _records_in(window, "calc") == pytest.approx(5 * RATE, rel=DATING)
    assert _records_in(window, "group-window-aggregate") == pytest.approx(5 * RATE * 0.9, rel=DATING)


def test_a_users_jar_is_measured(cluster: LocalCluster, jar: Path) -> None:
    there = _left_there(cluster.rest)
    with _testbed(cluster, UserJar(jar, "example.Remainders", ("4",))) as testbed:
        job = testbed.dataflow("remainders")
        assert [o.name for o in job.sources] == ["numbers"] and len(job.operators) == 4
        divisible, total = job.order[1:3]
        window = _window(testbed, job)
    assert window.achieved_rate == pytest.approx(RATE, rel=0.05)
    assert _records_in(window, divisible) == pytest.approx(5 * RATE, rel=DATING)
    assert _records_in(window, total) == pytest.approx(5 * RATE / 4, rel=DATING)
    assert _left_there(cluster.rest) == there


def test_a_users_jar_that_uses_the_table_api_is_measured_with_the_tasks_that_are_wanted(
    cluster: LocalCluster, table_jar: Path
) -> None:
    with _testbed(cluster, UserJar(table_jar, "example.TableRemainders")) as testbed:
        job = testbed.dataflow("remainders")
        (source,) = job.sources
        assert source.name in ("numbers", "numbers-1")  # on 1.20 the scan of the view is an operator of its own
        window = _window(testbed, job, **{"group-aggregate": 2})
    assert window.achieved_rate == pytest.approx(RATE, rel=0.05)
    assert _records_in(window, "group-aggregate") == pytest.approx(5 * RATE / 4, rel=DATING)
    assert len(set(window.samples.filter(pc.field("operator") == "group-aggregate")["task"].to_pylist())) == 2


def test_a_source_whose_rate_cannot_be_set_is_refused(cluster: LocalCluster, jar: Path) -> None:
    unrated = (
        "CREATE TABLE t (a INT) WITH ('connector' = 'datagen'); CREATE TABLE s (a INT) WITH ('connector' = 'print');"
        "INSERT INTO s SELECT a FROM t;"
    )
    programs: list[UserProgram] = [SqlScript(unrated), UserJar(jar, "example.Remainders", ("0",))]
    for program in programs:
        with (
            _testbed(cluster, program) as testbed,
            pytest.raises(InvalidInput, match="rate of every source must be set by Sluice"),
        ):
            testbed.dataflow("wrong")


def test_the_queries_of_nexmark_are_read(cluster: LocalCluster, root: Path) -> None:
    for query in ("q1", "q2", "q3", "q5", "q8", "q11"):
        script = SqlScript((root / "jobs" / f"nexmark-{query}.sql").read_text(encoding="utf-8"))
        with _testbed(cluster, script) as testbed:
            job = testbed.dataflow(query)
            assert [o.name for o in job.sources] == ["events"] and len(job.operators) >= 3, query
