"""A restart through a savepoint on a real Flink, of which each step is given up once and done again."""

from pathlib import Path

import pytest
import yaml

from autopilots.restarts import NEW, restart_intent
from flink.releases import NEWEST_IN_CI
from flink_client.jobs.restart import Restart, RestartProgram
from models.errors import SluiceError
from models.job import Job
from pipelines.control.actions.carrying import Carrying
from pipelines.control.actions.intents import SAVEPOINT, IntentJournal
from pipelines.control.actions.restart_actuator import RestartActuator
from pipelines.store.workspace import Workspace
from testbeds.feeding.control import SourceControl
from testbeds.flink.local.distribution import Release
from testbeds.flink.local.processes import LocalCluster
from testbeds.flink.local.profile import Profile, TaskManager
from testbeds.flink.programs.stated_costs import Payment, dataflow_program

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("release", NEWEST_IN_CI)
def test_a_restart_whose_savepoint_is_waited_for_in_vain_is_done_later_and_once(
    root: Path, tmp_path: Path, release: Release
) -> None:
    """The job is started again with the tasks that the kit's program sets itself, which the intent so wants."""
    job = Job.model_validate(yaml.safe_load((root / "jobs" / "wordcount.yaml").read_text()))
    with LocalCluster(release=release) as cluster, SourceControl() as control:
        cluster.ensure(Profile((TaskManager("tm1", 3, 900),)))
        control.offer({"source": 500.0})
        tasks = {"source": 1, "flatmap": 1, "count": 1}
        program = dataflow_program(job, tasks, control.address, {}, payment=Payment.PACED)
        rest = cluster.rest
        running = rest.run(cluster.uploaded(cluster.kit), program)
        rest.wait_until_running(running, 120.0)
        vertices = rest.job(running).vertices
        again = RestartProgram(
            jar=str(cluster.kit),
            entry_class=program.entry_class,
            arguments=program.arguments,
            settings=dict(program.settings),
        )
        same = {v.id: v.parallelism for v in vertices}
        names = {v.id: v.name.replace(": ", "-") for v in vertices}
        intent = restart_intent(running, names, same, same)
        journal = IntentJournal(Workspace(tmp_path), intent.job)
        restart, carrying = Restart(again, (tmp_path / "savepoints").as_uri()), Carrying(rest)
        jars = rest.jars()
        with pytest.raises(SluiceError, match="is not complete after 0 s"):
            RestartActuator(rest, journal, restart, carrying, timeout_s=0.0).carry_out(intent)
        carried = RestartActuator(rest, journal, restart, carrying, timeout_s=60.0).carry_out(intent)
        assert (carried.done, carried.flink_job) == ("rescaled", NEW), carried.why
        assert journal.marked(intent.number, SAVEPOINT) is not None
        assert len(list((tmp_path / "savepoints").iterdir())) == 1, "the savepoint was taken once"
        listed = {one["jid"]: one["state"] for one in rest.get("/jobs/overview")["jobs"]}
        assert listed == {running: "CANCELED", NEW: "RUNNING"} and rest.jars() == jars
