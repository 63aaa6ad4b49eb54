"""The scaling policy of a replan: the requested one, the evaluation's choice, or DS2; and that the plan says so."""

import math
from pathlib import Path

import pytest

from models.capacity.sizing import DEFAULT_HEADROOM
from models.errors import InvalidInput
from models.job import records_in_per_source_record
from models.plan.content import Plan
from pipelines.arena.choice import PolicyChoice, choice_key, choose
from pipelines.arena.evaluation import evaluate
from pipelines.arena.request import EvaluationRequest
from pipelines.cli import run as sluice
from pipelines.inputs.catalogue import load_job
from pipelines.inputs.plan_request import PlanRequest
from pipelines.planning.replan import replan
from pipelines.planning.replan_policy import policy_for
from pipelines.run import PipelineRun
from pipelines.stages import run_all
from pipelines.store.plans import PlanStore
from pipelines.store.workspace import Workspace

JOB, RATE = "nexmark-q1", 400_000.0


@pytest.fixture(scope="module")
def planned(tmp_path_factory: pytest.TempPathFactory, migrated_database: Path) -> Workspace:
    """Plan 1 is from measurements that are written here: 100,000 records/s a slot."""
    folder = tmp_path_factory.mktemp("replans")
    rows = [f"{memory},{slots},{1e5 * slots}" for memory in (8192, 65536) for slots in (2, 4, 8, 12)]
    measured = folder / "measured.csv"
    measured.write_text("\n".join(["memory_mb,task_slots,mst", *rows]) + "\n")
    workspace = Workspace(folder / "workspace")
    run_all(
        PipelineRun(
            PlanRequest(job=JOB, rate=RATE, testbed="recorded", measurements=str(measured), measurement_rows=5),
            workspace,
        )
    )
    return workspace


def _choose(workspace: Workspace, version: int, policy: str, **settings: float) -> None:
    choice = PolicyChoice(
        job=JOB,
        version=version,
        created_at="2026-01-01T00:00:00+00:00",
        policy=policy,
        settings=settings,
        reason=f"{policy} keeps the latency",
        rescale_mode="in-place",
        objective_s=10,
        attainment=0.99,
        winners=(),
        totals=(),
        cluster="arena",
        seed=1,
        seeds=1,
        evaluation="e",
        results="arena/evaluations/e/results.parquet",
    )
    workspace.write(choice_key(JOB, version), choice)


def _replanned(workspace: Workspace, rate: float, policy: str | None = None, cause: str | None = None) -> Plan:
    return replan(workspace, JOB, rate, policy=policy, cause=cause).plan


def test_the_choice_of_an_evaluation_is_followed_unless_another_is_named(planned: Workspace) -> None:
    plan = _replanned(planned, 1.5 * RATE, cause="the rate rose")
    assert plan.reasons[:2] == ("the rate rose", "scaled by DS2, since no evaluation chose a policy")
    assert plan.lineage.policy_choice is None

    _choose(planned, 1, "sluice")
    plan = _replanned(planned, 2 * RATE)
    assert plan.reasons[0] == "scaled by Sluice, the evaluation's choice 1 for the job: sluice keeps the latency"
    assert plan.lineage.policy_choice == "policies/nexmark-q1/v000001.json"

    plan = _replanned(planned, 2.5 * RATE, policy="ds2")
    assert (plan.reasons[0], plan.lineage.policy_choice) == ("scaled by DS2, as requested", None)

    _choose(planned, 2, "hpa-cpu")
    plan = _replanned(planned, 3 * RATE)
    assert plan.reasons[0].startswith(
        "scaled by DS2, since the evaluation's choice policies/nexmark-q1/v000002.json cannot decide here: "
    )
    assert (plan.lineage.policy, plan.lineage.policy_choice) in (("ds2", None), ("bids2", None))
    with pytest.raises(InvalidInput, match="cpu_cores"):
        _replanned(planned, 3.5 * RATE, policy="hpa-cpu")


@pytest.mark.slow
def test_a_replan_uses_the_settings_that_the_policy_won_with(tmp_path: Path) -> None:
    """DS2 is evaluated with 20 % more tasks (section 6.1 of the evaluation of autoscalers)."""
    rows = [f"{memory},{slots},{3e6 * slots}" for memory in (8192, 65536) for slots in (2, 4, 8, 12)]
    measured = tmp_path / "measured.csv"
    measured.write_text("\n".join(["memory_mb,task_slots,mst", *rows]) + "\n")
    workspace = Workspace(tmp_path / "workspace")
    request = PlanRequest(job=JOB, rate=10e6, testbed="recorded", measurements=str(measured), measurement_rows=5)
    run_all(PipelineRun(request, workspace))
    evaluated = EvaluationRequest(
        jobs=(JOB,),
        workloads=("steps",),
        policies=("ds2",),
        minutes=2,
        burn_in_minutes=0,
        settings={"ds2": {"minor_change_tasks": 0}},
    )
    choice = choose(evaluated, evaluate(evaluated, workspace, processes=1), JOB, workspace, "2026-01-01T00:00:00+00:00")
    assert choice.settings == {"over_provisioning_factor": 0.2, "warm_up_intervals": 2, "minor_change_tasks": 0}

    rate, job = 12e6, load_job(JOB)
    plan = _replanned(workspace, rate)
    ratio = records_in_per_source_record(job)
    exact = {o.name: DEFAULT_HEADROOM * rate * ratio[o.name] * o.cost.cpu_s for o in job.scaled_operators}
    tasks = {vertex.name: vertex.parallelism for vertex in plan.operators if vertex.name in exact}
    assert tasks == {name: math.ceil(1.2 * share) for name, share in exact.items()}
    assert tasks != {name: math.ceil(share) for name, share in exact.items()}


def test_the_command_says_that_the_same_plan_is_no_new_version(
    planned: Workspace, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["replan", JOB, "--rate", "700000", "--workspace", planned.url]
    assert sluice(command) == 0
    before = PlanStore(planned).versions(JOB)
    capsys.readouterr()
    assert sluice(command) == 0
    assert f"plan {JOB}@{before[-1]} is already the plan for 700,000 records/s" in capsys.readouterr().err
    assert PlanStore(planned).versions(JOB) == before


def test_of_two_replans_at_once_the_second_adds_nothing(planned: Workspace) -> None:
    plan = _replanned(planned, 900_000.0)
    fields = set(type(plan).model_fields) - {"version", "created_at", "difference"}
    again = plan.model_copy(update={"reasons": ("made at the same time", *plan.reasons)})
    content = type(plan).__bases__[0].model_validate(again.model_dump(include=fields))
    assert PlanStore(planned).publish(content, "2026-01-01T00:00:00+00:00") == plan


def test_a_choice_that_is_damaged_is_not_followed(tmp_path: Path) -> None:
    workspace = Workspace(tmp_path)
    workspace.write_bytes(choice_key(JOB, 1), b"{")
    chosen = policy_for(workspace, JOB)
    assert (chosen.name, chosen.choice) == ("ds2", None)
    assert "cannot be read" in chosen.reason
