"""Streams recorded over the same time, joined on a real Flink."""

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from flink_client.address import FlinkAddress
from testbeds.flink.feeding.recordings import recording
from testbeds.flink.local.processes import LocalCluster
from testbeds.flink.local.profile import Profile, TaskManager
from testbeds.flink.named_testbed import NamedFlinkTestbed
from testbeds.flink.programs.user_programs import SqlScript
from testbeds.protocol import Configuration, MeasuredWindow, Run
from testbeds.repeating import measured

pytestmark = pytest.mark.slow
RATE = 2000.0
DATING = 0.15
"""Share of a window by which its readings may be early or late, on a machine that runs other tests."""
ORDERS, PAYMENTS = 20_000, 5_000
"""Recorded over the same 200 s; each payment is of one order, which came 5 ms before."""
JOINED = """
CREATE TABLE orders (id BIGINT, came TIMESTAMP(3), WATERMARK FOR came AS came) WITH ('connector' = 'kafka');
CREATE TABLE payments (id BIGINT, came TIMESTAMP(3), WATERMARK FOR came AS came) WITH ('connector' = 'kafka');
CREATE TABLE paid (id BIGINT) WITH ('connector' = 'kafka');
INSERT INTO paid SELECT orders.id FROM orders, payments
WHERE orders.id = payments.id AND payments.came BETWEEN orders.came - INTERVAL '1' SECOND AND orders.came + INTERVAL '1' SECOND;
"""


@pytest.fixture(scope="module")
def cluster() -> Iterator[LocalCluster]:
    with LocalCluster() as made:
        made.ensure(Profile((TaskManager("tm1", 8, 900),)))
        yield made


@pytest.fixture
def joined(tmp_path: Path) -> SqlScript:
    every = ORDERS // PAYMENTS
    for name, ids, late_ms in (("orders", range(ORDERS), 0), ("payments", range(0, ORDERS, every), 5)):
        came = pa.array([1_767_225_600_000 + 10 * id_ + late_ms for id_ in ids], pa.timestamp("ms"))
        pq.write_table(pa.table({"id": list(ids), "came": came}), tmp_path / f"{name}.parquet")
    tables = {name: recording(tmp_path / f"{name}.parquet") for name in ("orders", "payments")}
    return SqlScript(JOINED, tables, keep_sinks=False)


def _total(window: MeasuredWindow, operator: str, column: str) -> float:
    return float(pc.sum(window.samples.filter(pc.field("operator") == operator)[column]).as_py())


def test_recorded_streams_that_are_joined_stay_in_step_also_after_an_overload(
    cluster: LocalCluster, joined: SqlScript
) -> None:
    with NamedFlinkTestbed(FlinkAddress(rest_url=cluster.rest.url), program=joined, warm_up_s=0.0) as testbed:
        job = testbed.dataflow("joined")
        assert {o.name: o.rate_share for o in job.sources} == {"orders": 0.8, "payments": 0.2}
        (join,) = (o.name for o in job.operators if "join" in o.name)
        configuration = Configuration({o.name: 1 for o in job.operators}, testbed.limits.memory_levels_mb[0])

        def windows(run: Run) -> list[MeasuredWindow]:
            before = [run.inject(RATE, 10.0, phase) for phase in ("ramp", "observe")]
            run.inject(1e6, 10.0, "warmup")  # each source drops what it cannot emit
            run.inject(RATE / 2, 10.0, "cooldown")
            return [before[-1], *(run.inject(RATE, seconds, p) for seconds, p in ((10.0, "ramp"), (10.0, "observe")))]

        first, _, last = measured(testbed, job, configuration, windows, run="r", seed=1, say=print)
    for window in (first, last):
        paid = _total(window, "payments", "records_out")
        assert paid == pytest.approx(0.2 * RATE * window.seconds, rel=0.05)
        assert _total(window, join, "records_out") == pytest.approx(paid, rel=DATING)
