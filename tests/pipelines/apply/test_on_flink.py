"""Plans applied to word count on a real Flink: they run as planned, or are rolled back."""

import json
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from flink.releases import NEWEST_IN_CI
from flink_client.jobs.restart import Restart, RestartProgram
from flink_client.rest.jars import JarProgram
from models.job import Job
from models.plan.content import Plan, PlanContent
from pipelines.apply.application import apply
from pipelines.apply.applied import Applied
from pipelines.apply.preparation import Preparation, prepare
from pipelines.apply.record import recorded
from pipelines.cli import run
from pipelines.store.plans import PlanStore
from pipelines.store.workspace import Workspace
from testbeds.feeding.control import SourceControl
from testbeds.flink.local.processes import LocalCluster
from testbeds.flink.local.profile import Profile, TaskManager
from testbeds.flink.programs.stated_costs import Payment, dataflow_program

pytestmark = pytest.mark.slow
MakePlan = Callable[..., PlanContent]
START_S = 60.0
RATE = 1200.0
"""Sentences/s: more than one Count task takes, 1 M words a minute at 20 words a sentence, and less than two do."""


class WordCount:
    """The job on a cluster of two TaskManagers, and its plans."""

    def __init__(self, cluster: LocalCluster, control: SourceControl, job: Job, workspace: Workspace) -> None:
        self.cluster, self.rest, self.control, self.workspace = cluster, cluster.rest, control, workspace
        tasks = {"source": 1, "flatmap": 1, "count": 1}
        self.program: JarProgram = dataflow_program(job, tasks, control.address, {}, payment=Payment.PACED)
        self.id = self.start()

    def start(self) -> str:
        id_ = self.rest.run(self.cluster.uploaded(self.cluster.kit), self.program)
        self.rest.wait_until_running(id_, START_S)
        return id_

    def publish(self, content: PlanContent) -> Plan:
        return PlanStore(self.workspace).publish(content, "2026-01-01T00:00:00+00:00")

    def prepared(self, content: PlanContent) -> Preparation:
        return prepare(self.rest, self.publish(content), job_id=self.id, vertices=None, job_file=None, program=None)

    def where(self) -> dict[str, dict[str, int]]:
        """TaskManager -> operator -> tasks."""
        found: dict[str, Counter[str]] = {}
        for vertex in self.rest.job(self.id).vertices:
            for one in self.rest.subtasks(self.id, vertex.id):
                found.setdefault(one.task_manager, Counter())[vertex.name.removeprefix("Source: ")] += 1
        return {worker: dict(tasks) for worker, tasks in found.items()}

    def tasks(self) -> dict[str, int]:
        return {v.name.removeprefix("Source: "): v.running for v in self.rest.job(self.id).vertices}


@pytest.fixture(params=NEWEST_IN_CI)
def wordcount(root: Path, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[WordCount]:
    job = Job.model_validate(yaml.safe_load((root / "jobs" / "wordcount.yaml").read_text()))
    with LocalCluster(release=request.param) as cluster, SourceControl() as control:
        cluster.ensure(Profile((TaskManager("tm1", 4, 900), TaskManager("tm2", 2, 900))))
        control.offer({"source": RATE})
        yield WordCount(cluster, control, job, Workspace(tmp_path))


def test_plans_run_as_they_say_or_not_at_all(
    wordcount: WordCount, make_plan: MakePlan, capsys: pytest.CaptureFixture[str]
) -> None:
    """One cluster for all, since its start takes longer than the rest."""
    _one_that_finds_no_slots_is_taken_back(wordcount, make_plan)
    _one_is_rehearsed_and_applied_by_command(wordcount, make_plan, capsys)
    _one_that_only_moves_tasks_moves_them(wordcount, make_plan)
    _a_restart_keeps_to_the_plan_or_to_what_ran_before(wordcount, make_plan)


def _one_that_finds_no_slots_is_taken_back(wordcount: WordCount, make_plan: MakePlan) -> None:
    prepared = wordcount.prepared(make_plan({"tm1": {"source": 1, "flatmap": 1, "count": 2}, "tm2": {"count": 2}}))
    other = wordcount.start()  # takes the slots that were free a moment ago
    applied = apply(wordcount.rest, prepared, timeout_s=2.0, observe_s=0.0)
    assert (applied.outcome, applied.method) == ("rolled-back", "rescale")
    assert "'count' still has 1 tasks and not 4 after 2 s; the job runs with the tasks" in applied.reason
    assert wordcount.tasks() == {"source": 1, "flatmap": 1, "count": 1}
    assert wordcount.cluster.placement_file.read_text() == ""
    assert set(wordcount.rest.requirements(wordcount.id).values()) == {1}
    wordcount.rest.cancel(other)
    time.sleep(1.0)  # its slots come back


def _one_is_rehearsed_and_applied_by_command(
    wordcount: WordCount, make_plan: MakePlan, capsys: pytest.CaptureFixture[str]
) -> None:
    placement = {"tm1": {"source": 1, "flatmap": 1}, "tm2": {"count": 2}}
    plan = wordcount.publish(make_plan(placement, rate=RATE))
    command = ["plans", "apply", "wordcount", "--flink", wordcount.rest.url, "--observe", "6", "--json"]
    command += ["--workspace", wordcount.workspace.url]
    assert run([*command, "--dry-run"]) == 0
    rehearsed = json.loads(capsys.readouterr().out)
    assert (rehearsed["scheduler"], rehearsed["method"], rehearsed["advice"]) == ("adaptive", "rescale", [])
    assert [(c["before"], c["after"]) for c in rehearsed["changes"]] == [(1, 1), (1, 1), (1, 2)]
    assert wordcount.tasks()["count"] == 1
    code, captured = run(command), capsys.readouterr()
    assert code == 0, captured.err
    applied = Applied.model_validate_json(captured.out)
    assert wordcount.where() == placement
    assert (applied.outcome, applied.placement) == ("applied", "as-planned")
    assert recorded(wordcount.workspace, "wordcount", plan.version) == [applied]
    keeps_history = wordcount.rest.flink_version().startswith("2.")
    assert (applied.flinks_rescale_s is not None) == keeps_history
    assert applied.flinks_rescale_s is None or 0 < applied.flinks_rescale_s < applied.seconds + 1
    effect = applied.effect
    assert effect is not None and effect.rate == pytest.approx(RATE, rel=0.15)
    assert effect.rate_before is not None and effect.rate_before > 0
    count = effect.vertices[-1]
    # In the 6 s after a rescale 144,000 words come, and what waited before Count is worked off, too: up to 40,000 words
    # wait in its and FlatMap's 32 buffers of 32 KiB.
    assert count.records_in_per_s == pytest.approx(20 * effect.rate, rel=0.25)
    assert count.expected_busyness == pytest.approx(effect.rate / (2 * 1e6 / 60 / 20))
    assert count.busyness is not None and 0.5 < count.busyness <= 1.0


def _one_that_only_moves_tasks_moves_them(wordcount: WordCount, make_plan: MakePlan) -> None:
    placement = {"tm1": {"source": 1, "count": 1}, "tm2": {"flatmap": 1, "count": 1}}
    prepared = wordcount.prepared(make_plan(placement))
    assert prepared.move is not None and prepared.move.detour is not None
    applied = apply(wordcount.rest, prepared, timeout_s=20.0, observe_s=0.0)
    assert applied.outcome == "applied", applied.reason
    assert wordcount.where() == placement
    again = apply(wordcount.rest, wordcount.prepared(make_plan(placement)), timeout_s=1.0, observe_s=0.0)
    assert (again.outcome, again.method) == ("unchanged", "none")


def _a_restart_keeps_to_the_plan_or_to_what_ran_before(wordcount: WordCount, make_plan: MakePlan) -> None:
    program = RestartProgram(
        jar=str(wordcount.cluster.kit),
        entry_class=wordcount.program.entry_class,
        arguments=wordcount.program.arguments,
        settings=dict(wordcount.program.settings),
    )
    restart = Restart(program, (wordcount.cluster.folder / "savepoints").as_uri())
    wordcount.cluster.place([])
    before = wordcount.id
    prepared = wordcount.prepared(make_plan({"tm1": {"source": 1, "flatmap": 1, "count": 1}}))
    by_restart = replace(prepared, restart=restart, method="restart", move=None)
    applied = apply(wordcount.rest, by_restart, timeout_s=20.0, observe_s=0.0)
    assert (applied.outcome, applied.method) == ("applied", "restart"), applied.reason
    wordcount.id = applied.flink_job
    assert wordcount.id != before and wordcount.rest.job(before).state == "CANCELED"
    assert wordcount.tasks() == {"source": 1, "flatmap": 1, "count": 1}
    unable = replace(by_restart, job=replace(prepared.job, id=wordcount.id), wanted={wordcount_vertex(prepared): 9})
    unable = replace(
        unable, job=replace(unable.job, vertices=tuple(replace(v, parallelism=1) for v in unable.job.vertices))
    )
    applied = apply(wordcount.rest, unable, timeout_s=2.0, observe_s=0.0)
    assert applied.outcome == "rolled-back", applied.reason
    wordcount.id = applied.flink_job
    assert wordcount.tasks() == {"source": 1, "flatmap": 1, "count": 1}


def wordcount_vertex(prepared: Preparation) -> str:
    return prepared.vertices["count"]
