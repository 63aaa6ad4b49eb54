"""Rescales on clusters that a user names: live where the scheduler can, else from a savepoint."""

from dataclasses import replace

import pytest

from flink_client.address import FlinkAddress
from models.errors import Infeasible
from testbeds.flink.local.processes import LocalCluster
from testbeds.flink.local.profile import Profile, TaskManager
from testbeds.flink.named_testbed import NamedFlinkTestbed
from testbeds.protocol import Configuration
from testbeds.suite import small_job

pytestmark = [pytest.mark.slow, pytest.mark.long]
RATE = 1000.0


@pytest.mark.parametrize(("scheduler", "live"), [("adaptive", True), ("default", False)])
def test_a_job_on_a_named_cluster_keeps_its_log_and_its_state(scheduler: str, live: bool) -> None:
    with LocalCluster() as local:
        local.ensure(Profile((TaskManager("tm-1", 8, 1024.0),), settings={"jobmanager.scheduler": scheduler}))
        with NamedFlinkTestbed(FlinkAddress(rest_url=local.rest.url)) as testbed:
            configuration = Configuration(
                {"source": 1, "map": 1, "count": 1, "sink": 1}, testbed.limits.memory_levels_mb[0]
            )
            with testbed.deploy(small_job(), configuration, run="r", seed=1) as run:
                before, before_id = run.serve(RATE, 10.0), run.id
                more = replace(configuration, parallelism={**configuration.parallelism, "count": 2})
                done = run.rescale(more)
                after = run.serve(RATE, 30.0)
                with pytest.raises(Infeasible):
                    run.rescale(replace(configuration, parallelism={**configuration.parallelism, "count": 9}))
                assert (run.id == before_id) == live, "a restart from a savepoint is another job to Flink"
    assert done.downtime_s > 0 and done.state_mb > 0.1
    assert before.arrived.sum() + after.arrived.sum() == pytest.approx(40 * RATE, rel=0.1)
    waits = before.arrived.sum() + after.arrived.sum() - before.read.sum() - after.read.sum()
    assert after.lag[-1] == pytest.approx(waits, abs=0.01 * RATE)
    assert after.lag[-1] <= 5 * RATE and len(after.activity["count"].busy_s) == 2
