"""A service of 250 calls/s that all tasks share, and one whose calls take 4 ms, on a real Flink of this machine."""

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from flink.rated_programs import made_jar
from flink_client.rest.client import FlinkRest
from flink_client.rest.jars import JarProgram
from models.capacity.observed.record import ObservedJob
from pipelines.observe.observation import observe_job
from pipelines.progress import Quiet
from pipelines.store.workspace import Workspace
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
def ready(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, tuple[FlinkRest, str]]]:
    """By the kind of calls: a cluster for the job alone, whose CPU is the job's, and the jar on it."""
    with LocalCluster() as one, LocalCluster() as other:
        made = made_jar(JAR, "Calling", tmp_path_factory.mktemp("jar"), one.kit, flink_home(), find_jdk())
        for cluster in (one, other):
            cluster.ensure(Profile((TaskManager("tm1", 4, 900.0),)))
        clusters = {"one at a time": one, "side by side": other}
        yield {calls: (cluster.rest, cluster.rest.upload(made)) for calls, cluster in clusters.items()}


def seen(flink: FlinkRest, jar: str, calls: str, tasks: int, place: Workspace) -> ObservedJob:
    job = flink.run(jar, JarProgram("Calling", (calls,), {"parallelism.default": str(tasks)}))
    try:
        flink.wait_until_running(job, 180.0)
        time.sleep(SETTLE_S)
        return observe_job(flink, job, FOR_S, place, Quiet()).job
    finally:
        flink.cancel(job)


def seen_meanwhile(
    ready: dict[str, tuple[FlinkRest, str]], tasks: int, place: Workspace
) -> tuple[ObservedJob, ObservedJob]:
    """The job whose tasks share the service, and the one whose tasks do not, at the same time."""
    with ThreadPoolExecutor(2) as pool:
        both = [pool.submit(seen, *ready[calls], calls, tasks, place) for calls in ("one at a time", "side by side")]
        shared, alone = (one.result() for one in both)
    return shared, alone


def test_two_numbers_of_tasks_distinguish_a_shared_limit_from_long_calls(
    ready: dict[str, tuple[FlinkRest, str]], tmp_path: Path
) -> None:
    place = Workspace(tmp_path / "workspace")
    few_shared, few_alone = seen_meanwhile(ready, 2, place)
    for few in (few_shared, few_alone):  # two tasks leave open what limits them
        assert few.suspected_limit is not None
        assert few.suspected_limit.certainty == "possible"
    many_shared, many_alone = seen_meanwhile(ready, 4, place)
    limit = many_shared.suspected_limit
    assert limit is not None
    assert (limit.certainty, limit.vertex) == ("likely", many_shared.vertices[1].name)
    # Sleeping takes a little longer than asked for: by up to a tenth of 4 ms where the machine is shared.
    assert 0.8 / CALL_S < limit.rate_limit <= 1.02 / CALL_S
    assert many_shared.vertices[1].parallelism == 4
    assert many_alone.suspected_limit is None
    few_rate, many_rate = (job.vertices[1].observed_rate or 0.0 for job in (few_alone, many_alone))
    assert many_rate == pytest.approx(2 * few_rate, rel=0.15)
