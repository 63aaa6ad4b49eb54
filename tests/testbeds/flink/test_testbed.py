"""The testbed on a real Flink, with a job whose capacity can be worked out by hand."""

from collections.abc import Iterator
from dataclasses import replace

import pyarrow.compute as pc
import pytest

from models.cluster import Cluster
from models.errors import Infeasible, InvalidInput, SluiceError
from models.job import Job
from testbeds.flink.lab.stolen import StolenTime
from testbeds.flink.testbed import FlinkTestbed
from testbeds.protocol import SAMPLE_SCHEMA, Configuration
from testbeds.suite import small_job

pytestmark = pytest.mark.slow
CLUSTER = Cluster.model_validate({"name": "local", "count": 2, "slots": 3, "cores": 0.25, "memory_mb": 1024})
# Worker tm-1 has 0.25 cores: 4e-6 s of map, and 2e-5 s of count for every second record.
SATURATED = 0.25 / 14e-6
CONFIGURATION = Configuration(
    parallelism={"source": 1, "map": 1, "count": 1, "sink": 1},
    memory_mb=1024.0,
    placement={"tm-1": {"map": 1, "count": 1}, "tm-2": {"sink": 1}},
)


@pytest.fixture(scope="module")
def testbed() -> Iterator[FlinkTestbed]:
    with FlinkTestbed(CLUSTER, [900.0, 1024.0]) as made:
        yield made


@pytest.fixture
def job() -> Job:
    return small_job()


def test_it_states_its_limits(testbed: FlinkTestbed) -> None:
    assert testbed.name == "flink" and testbed.cluster == CLUSTER
    assert testbed.limits.max_task_slots == 6 and testbed.limits.slots_per_worker == 3
    assert testbed.limits.memory_levels_mb == (900.0, 1024.0)


@pytest.mark.parametrize(
    ("change", "error"),
    [
        ({"parallelism": {"source": 1, "map": 1, "count": 1}}, InvalidInput),
        ({"parallelism": {"source": 1, "map": 9, "count": 1, "sink": 1}, "placement": None}, Infeasible),
        ({"placement": {"tm-1": {"map": 1}}}, InvalidInput),
        ({"placement": {"nowhere": {"map": 1, "count": 1, "sink": 1}}}, InvalidInput),
        ({"memory_mb": 500.0}, Infeasible),
        ({"memory_mb": 2048.0}, Infeasible),
        ({"managed_memory_mb": {"count": 100.0}}, InvalidInput),
    ],
)
def test_what_it_cannot_deploy_is_refused(
    testbed: FlinkTestbed, job: Job, change: dict[str, object], error: type[SluiceError]
) -> None:
    with pytest.raises(error) as caught:
        testbed.deploy(job, replace(CONFIGURATION, **change), run="r", seed=1)  # type: ignore[arg-type]
    assert type(caught.value) is error


def test_a_job_takes_what_its_operators_costs_and_their_worker_allow(
    testbed: FlinkTestbed, job: Job, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The first window that counts is measured again, as where much of it was stolen: it is as if it had been measured once.
    stolen = [0.5]
    monkeypatch.setattr(StolenTime, "share", lambda self: stolen.pop() if stolen else 0.0)
    with testbed.deploy(job, CONFIGURATION, run="r-1", seed=1) as run:
        with pytest.raises(Infeasible, match="one job at a time"):
            testbed.deploy(job, CONFIGURATION, run="r-2", seed=1)
        run.inject(1e6, 5.0, "warmup")
        full = run.inject(1e6, 5.0, "observe")
        low = SATURATED / 4
        run.inject(low, 5.0, "ramp")
        window = run.inject(low, 5.0, "observe")
        assert run.elapsed_s == 20.0 and not stolen
    assert full.achieved_rate == pytest.approx(SATURATED, rel=0.1)
    # What was taken in 10 s is 2 % of what was offered, so that even twice as much makes no larger difference.
    assert full.pending_records == pytest.approx((1e6 - SATURATED) * 10, rel=0.02)
    assert window.achieved_rate == pytest.approx(low, rel=0.02)
    assert window.pending_records <= low
    samples = window.samples
    assert samples.schema.equals(SAMPLE_SCHEMA) and samples.num_rows == 4
    where = dict(zip(samples["operator"].to_pylist(), samples["worker"].to_pylist(), strict=True))
    assert where == {"source": "injector-1", "map": "tm-1", "count": "tm-1", "sink": "tm-2"}
    assert sorted(pc.unique(samples["time_s"]).to_pylist()) == [20.0]
    for name, records in {"source": low, "map": low, "count": low / 2, "sink": low / 2}.items():
        of_operator = samples.filter(pc.field("operator") == name)
        assert pc.sum(of_operator["records_in"]).as_py() == pytest.approx(5 * records, rel=0.1)
        shares = [pc.sum(of_operator[c]).as_py() for c in ("busy_s", "backpressured_s", "idle_s")]
        assert sum(shares) == pytest.approx(5.0, rel=0.01)
    state = full.samples.filter(pc.field("operator") == "count")
    assert pc.sum(state["state_written_bytes"]).as_py() > 0
    with pytest.raises(SluiceError, match="closed run"):
        run.inject(low, 5.0, "observe")
