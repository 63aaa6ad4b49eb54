"""The autopilot on a real Flink: it follows the rate in place, and faults of the cluster make it wait."""

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from autopilots.flown import RATE, Flown
from models.job import Job
from pipelines.store.workspace import Workspace
from testbeds.feeding.control import SourceControl
from testbeds.flink.local.distribution import RELEASES
from testbeds.flink.local.processes import LocalCluster
from testbeds.flink.local.profile import Profile, TaskManager

pytestmark = pytest.mark.long


@pytest.fixture(params=RELEASES.values(), ids=RELEASES)
def flown(root: Path, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Flown]:
    job = Job.model_validate(yaml.safe_load((root / "jobs" / "wordcount.yaml").read_text()))
    with LocalCluster(release=request.param, hooked=False) as cluster, SourceControl() as control:
        cluster.ensure(Profile((TaskManager("tm1", 3, 900), TaskManager("tm2", 3, 900))))
        control.offer({"source": RATE})
        made = Flown(cluster, control, job, Workspace(tmp_path))
        yield made
        made.end()


def test_the_rate_is_followed_and_faults_are_waited_for(flown: Flown) -> None:
    """One cluster for all, since its start takes longer than the rest."""
    flown.until(lambda: any(d.done == "none" and d.held is None for d in flown.stored), 90.0)
    flown.control.offer({"source": 1.6 * RATE})
    flown.until(lambda: flown.counting() == 2, 90.0)
    flown.until(lambda: len(flown.actions) == 1, 30.0)
    (first,) = flown.actions
    assert first.done == "rescaled" and first.rescale is not None and first.rescale.method == "in-place"
    assert first.rescale.before["count"] == 1 and first.rescale.after["count"] == 2
    keeps_history = flown.cluster.rest.flink_version().startswith("2.")
    assert (first.rescale.flinks_rescale_s is not None) == keeps_history
    assert first.decision_s < 0.5
    _a_taskmanager_is_killed(flown)
    _the_jobmanager_is_killed(flown)


def _a_taskmanager_is_killed(flown: Flown) -> None:
    """Flink goes on with the slots that are left; nothing is rescaled while it lacks some."""
    before, newest = len(flown.actions), flown.stored[-1].number
    flown.cluster.kill("tm2")
    flown.until(lambda: any("slots are missing" in why for why in flown.held("restarting", newest)), 150.0)
    time.sleep(20.0)
    assert len(flown.actions) == before, [(d.done, d.reason) for d in flown.actions]


def _the_jobmanager_is_killed(flown: Flown) -> None:
    before, newest = len(flown.actions), flown.stored[-1].number
    flown.cluster.kill("jobmanager")
    flown.until(lambda: any("does not answer" in why for why in flown.held("stale", newest)), 60.0)
    time.sleep(10.0)
    assert len(flown.actions) == before and flown.failure is None
