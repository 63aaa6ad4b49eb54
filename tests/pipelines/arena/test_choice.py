"""A job's policy is chosen by the stated rule, and each choice is kept once."""

from collections.abc import Callable
from pathlib import Path

import pytest

from models.errors import InvalidInput
from pipelines.arena.choice import PolicyChoice, choice_key, choose, latest_choice
from pipelines.arena.evaluation import Evaluation, evaluate
from pipelines.arena.ranking import Ranking, Standing
from pipelines.arena.request import EvaluationRequest
from pipelines.arena.scoring.runs import SettingRuns
from pipelines.arena.scoring.scores import GroupScore
from pipelines.store.workspace import Workspace

WHEN = "2026-01-02T03:04:05+00:00"
POLICIES = ["ds2", "flink", "sluice"]


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    return Workspace(tmp_path)


def ranking(workload: str, figures: dict[str, dict[float, tuple[float, float]]]) -> Ranking:
    """Of each policy and value of its knob the late share, and the task-hours."""
    runs = {
        policy: [SettingRuns(value, (cost,), (late,)) for value, (late, cost) in own.items()]
        for policy, own in figures.items()
    }
    group = GroupScore.of("q", workload, 10, 0.99, runs)
    settings = tuple(
        tuple(
            Standing(
                job="q", workload=workload, policy=score.policy, value=p.value, late_share=p.late_share, latency_p50_s=0,
                latency_p95_s=1, throughput_ratio=1.0, task_hours=p.task_hours, memory_gib_hours=2 * p.task_hours,
                rescales=0, downtime_s=0, convergence_s=None, convergence_steps=0, seeds=1, holds=p.late_share <= 0.01,
            )
            for p in score.points
        )
        for score in group.policies
    )  # fmt: skip
    return Ranking("in-place", group, settings, f"about {workload}", bound_hours=5.0)


@pytest.fixture
def chosen(request_of: Callable[..., EvaluationRequest], workspace: Workspace) -> Callable[..., PolicyChoice]:
    """The choice, from the figures of each workload."""

    def of(*figures: dict[str, dict[float, tuple[float, float]]]) -> PolicyChoice:
        rankings = tuple(ranking(f"w{i}", one) for i, one in enumerate(figures))
        evaluation = Evaluation((), rankings, f"arena/evaluations/{hash(rankings)}/results.parquet")
        return choose(request_of(policies=POLICIES, sweep=True), evaluation, "q", workspace, WHEN)

    return of


def test_the_choice_is_the_verdict_s_with_the_setting_that_holds_it_most_often(
    chosen: Callable[..., PolicyChoice],
) -> None:
    calm = {"ds2": {0.0: (0.0, 10.0), 0.5: (0.0, 15.0), 1.0: (0.0, 20.0)}, "flink": {0.6: (0.0, 30.0)}}
    wild = {"ds2": {0.0: (0.5, 10.0), 0.5: (0.0, 15.0), 1.0: (0.0, 20.0)}, "flink": {0.6: (0.0, 30.0)}}
    made = chosen(calm, wild)
    assert (made.policy, made.settings) == ("ds2", {"over_provisioning_factor": 0.5, "warm_up_intervals": 2})
    assert (made.rescale_mode, made.objective_s, made.attainment) == ("in-place", 10, 0.99)
    best, second = made.totals
    assert (best.knob, best.value, best.workloads_held, best.task_hours) == ("over_provisioning_factor", 0.5, 2, 30)
    assert (second.policy, second.task_hours) == ("flink", 60)
    assert made.reason.startswith("Run ds2: it holds 99 % of records within 10 s with ")


def test_a_policy_that_holds_it_with_another_setting_in_each_workload_is_run_with_the_one_that_misses_least(
    chosen: Callable[..., PolicyChoice],
) -> None:
    calm = {"flink": {0.3: (0.2, 90.0), 0.6: (0.0, 30.0)}}
    wild = {"flink": {0.3: (0.0, 90.0), 0.6: (0.5, 30.0)}}
    (total,) = chosen(calm, wild).totals
    assert (total.workloads_held, total.workloads_attained, total.value) == (1, 2, 0.6)


def test_where_none_holds_it_the_fewest_late_records_count(chosen: Callable[..., PolicyChoice]) -> None:
    made = chosen({"ds2": {0.0: (0.7, 10.0)}, "flink": {0.3: (0.2, 90.0), 0.6: (0.5, 30.0)}})
    assert made.reason == "No policy holds 99 % of records within 10 s: flink comes closest, with 20 % late."
    assert made.settings["utilization.target"] == 0.3


def test_the_first_mode_of_the_request_decides(request_of, workspace: Workspace, tmp_path: Path) -> None:
    request = request_of(policies=["ds2"], rescale_modes=["savepoint", "in-place"])
    evaluation = evaluate(request, Workspace(tmp_path / "replays"), processes=1)
    made = choose(request, evaluation, "nexmark-q1", workspace, WHEN)
    assert (made.rescale_mode, made.objective_s, made.settings["warm_up_intervals"]) == ("savepoint", 60, 6)
    assert len(made.winners) == 1


def test_a_chosen_static_is_for_the_peak_that_it_was_replayed_for(request_of, workspace: Workspace) -> None:
    """Left to the rate of a replan, it would have the tasks of that rate."""
    request = request_of(policies=["static"], workloads=["increasing", "steps"], minutes=60)
    evaluation = evaluate(request, workspace, processes=1)
    made = choose(request, evaluation, "nexmark-q1", workspace, WHEN)
    assert made.settings["rate"] == max(done.cell.workload.peak_rate for done in evaluation.finished)
    assert {done.cell.settings["rate"] for done in evaluation.finished} > {made.settings["rate"]}


def test_a_choice_is_kept_once_and_another_evaluation_makes_the_next_version(
    asked: EvaluationRequest, evaluated: Evaluation, workspace: Workspace
) -> None:
    first = choose(asked, evaluated, "nexmark-q1", workspace, WHEN)
    assert choose(asked, evaluated, "nexmark-q1", workspace, "2027-01-01T00:00:00+00:00") == first
    assert (first.version, first.created_at, first.results) == (1, WHEN, evaluated.results_key)
    assert [w.policy for w in first.winners] == [r.winner.policy for r in evaluated.rankings]
    stricter = asked.model_copy(update={"attainment": 0.5})
    second = choose(stricter, evaluated, "nexmark-q1", workspace, WHEN)
    assert second.version == 2
    assert latest_choice(workspace, "nexmark-q1") == second
    assert workspace.exists(choice_key("nexmark-q1", 1))


def test_a_damaged_choice_is_followed_by_the_next_version(
    asked: EvaluationRequest, evaluated: Evaluation, workspace: Workspace
) -> None:
    workspace.create_bytes(choice_key("nexmark-q1", 4), b"{}")
    assert choose(asked, evaluated, "nexmark-q1", workspace, WHEN).version == 5


def test_a_job_without_a_choice_says_how_to_get_one(workspace: Workspace) -> None:
    with pytest.raises(InvalidInput, match=r"no scaling policy was chosen for the job 'q'.*evaluate_policies"):
        latest_choice(workspace, "q")


def test_a_cost_is_a_gap_above_the_bound_where_both_are_known() -> None:
    calm = ranking("calm", {"ds2": {0.0: (0.001, 10.0)}, "flink": {0.6: (0.5, 8.0)}})
    # 10 task-hours, where no policy can do with less than 5.
    assert [calm.gap(score) for score in calm.group.policies] == [1.0, None]
