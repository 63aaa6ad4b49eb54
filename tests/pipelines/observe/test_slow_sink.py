"""A service of 250 calls/s that all tasks share, and one whose calls take 4 ms, on a real Flink of this machine."""

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from flink_client.rest import FlinkRest, JarProgram
from models.capacity.observed.record import ObservedJob
from pipelines.observe.observation import observe_job
from pipelines.progress import Quiet
from pipelines.store.workspace import Workspace
from rated_programs import made_jar
from testbeds.flink.local.distribution import flink_home
from testbeds.flink.local.processes import LocalCluster
from testbeds.flink.local.profile import Profile, TaskManager
from testbeds.local.jdk import find_jdk

pytestmark = pytest.mark.slow
CALL_S = 0.004
SETTLE_S = 15.0
FOR_S = 30.0
JAR = """
import java.util.concurrent.locks.ReentrantLock;
import org.apache.flink.api.common.functions.MapFunction;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.streaming.api.functions.sink.v2.DiscardingSink;

public final class Calling {
    static final ReentrantLock SERVICE = new ReentrantLock(true);

    static final class Call implements MapFunction<String, String> {
        private static final long serialVersionUID = 1;
        private final boolean one;

        Call(boolean one) {
            this.one = one;
        }

        @Override
        public String map(String value) throws Exception {
            ReentrantLock service = one ? SERVICE : new ReentrantLock();
            service.lock();
            try {
                Thread.sleep(4);
            } finally {
                service.unlock();
            }
            return value;
        }
    }

    public static void main(String[] args) throws Exception {
        StreamExecutionEnvironment env = StreamExecutionEnvironment.getExecutionEnvironment();
        // Of a thousand bytes, so that buffers are full soon and hold seconds.
        env.fromSequence(0, Long.MAX_VALUE).setParallelism(1).name("numbers")
                .map(number -> "x".repeat(1000) + number).returns(Types.STRING).setParallelism(1).rebalance()
                .map(new Call(args[0].equals("one at a time"))).name("call")
                .sinkTo(new DiscardingSink<>()).name("nowhere");
        env.execute("calls " + args[0]);
    }
}
"""


@pytest.fixture(scope="module")
def cluster() -> Iterator[LocalCluster]:
    with LocalCluster() as made:
        made.ensure(Profile((TaskManager("tm1", 4, 900.0),)))
        yield made


@pytest.fixture(scope="module")
def jar(cluster: LocalCluster, tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("jar")
    return cluster.rest.upload(made_jar(JAR, "Calling", folder, cluster.kit, flink_home(), find_jdk()))


def seen(flink: FlinkRest, jar: str, calls: str, tasks: int, place: Workspace) -> ObservedJob:
    job = flink.run(jar, JarProgram("Calling", (calls,), {"parallelism.default": str(tasks)}))
    try:
        flink.wait_until_running(job, 180.0)
        time.sleep(SETTLE_S)
        return observe_job(flink, job, FOR_S, place, Quiet()).job
    finally:
        flink.cancel(job)


def by_two_and_four_tasks(
    cluster: LocalCluster, jar: str, calls: str, place: Workspace
) -> tuple[ObservedJob, ObservedJob]:
    """The job with two tasks that call, which alone leave open what limits them, and then with four."""
    first = seen(cluster.rest, jar, calls, 2, place)
    assert first.suspected_limit is not None
    assert first.suspected_limit.certainty == "possible"
    return first, seen(cluster.rest, jar, calls, 4, place)


def test_a_shared_limit_is_found_by_two_numbers_of_tasks(cluster: LocalCluster, jar: str, tmp_path: Path) -> None:
    _, second = by_two_and_four_tasks(cluster, jar, "one at a time", Workspace(tmp_path / "workspace"))
    limit = second.suspected_limit
    assert limit is not None
    assert (limit.certainty, limit.vertex) == ("likely", second.vertices[1].name)
    # Sleeping takes a little longer than asked for: by up to a tenth of 4 ms where the machine is shared.
    assert 0.8 / CALL_S < limit.rate_limit <= 1.02 / CALL_S
    assert second.vertices[1].parallelism == 4


def test_calls_that_take_long_are_no_limit(cluster: LocalCluster, jar: str, tmp_path: Path) -> None:
    first, second = by_two_and_four_tasks(cluster, jar, "side by side", Workspace(tmp_path / "workspace"))
    assert second.suspected_limit is None
    assert second.vertices[1].observed_rate == pytest.approx(2 * (first.vertices[1].observed_rate or 0.0), rel=0.15)
