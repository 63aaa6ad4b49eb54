"""A job's policy is chosen by the stated rule, and each choice is kept once."""

from collections.abc import Callable
from pathlib import Path

import pytest

from models.errors import InvalidInput
from pipelines.arena.choice import choice_key, choose, latest_choice
from pipelines.arena.evaluation import Evaluation
from pipelines.arena.ranking import Ranking, Standing
from pipelines.arena.request import EvaluationRequest
from pipelines.store.workspace import Workspace

WHEN = "2026-01-02T03:04:05+00:00"
POLICIES = ["ds2", "flink", "sluice"]


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    return Workspace(tmp_path)


def ranking(workload: str, figures: dict[str, tuple[float, float]]) -> Ranking:
    """Of each policy its p95 latency, and its task-hours."""
    standings = [
        Standing(
            job="q", workload=workload, policy=policy, latency_p50_s=0, latency_p95_s=p95, throughput_ratio=1.0,
            task_hours=cost, memory_gib_hours=2 * cost, rescales=0, downtime_s=0, convergence_s=None,
            convergence_steps=0, seeds=1, within_bound=p95 <= 60,
        )
        for policy, (p95, cost) in figures.items()
    ]  # fmt: skip
    return Ranking(tuple(standings), f"about {workload}")


@pytest.fixture
def chosen(request_of: Callable[..., EvaluationRequest], workspace: Workspace) -> Callable[..., tuple[str, str]]:
    """The policy and the reason, from the figures of each workload."""

    def of(*figures: dict[str, tuple[float, float]]) -> tuple[str, str]:
        rankings = tuple(ranking(f"w{i}", one) for i, one in enumerate(figures))
        evaluation = Evaluation((), rankings, f"arena/evaluations/{hash(rankings)}/results.parquet")
        made = choose(request_of(policies=POLICIES), evaluation, "q", workspace, WHEN)
        return made.policy, made.reason

    return of


def test_keeping_the_bound_more_often_counts_before_what_it_costs(chosen: Callable[..., tuple[str, str]]) -> None:
    calm = {"ds2": (70, 10.0), "flink": (10, 40.0), "sluice": (10, 50.0)}
    wild = {"ds2": (10, 10.0), "flink": (90, 40.0), "sluice": (59, 50.0)}
    assert chosen(calm, wild) == (
        "sluice",
        "sluice keeps the p95 latency within 60 s in 2 of 2 workloads, and no other policy in as many",
    )


def test_of_those_that_keep_it_equally_often_the_cheapest_is_chosen(chosen: Callable[..., tuple[str, str]]) -> None:
    calm = {"ds2": (70, 10.0), "flink": (10, 1040.0), "sluice": (1, 1050.0)}
    assert chosen(calm) == (
        "flink",
        "flink keeps the p95 latency within 60 s in its one workload, and takes the fewest task-hours of the 2 that do "
        "(1,040.0)",
    )


def test_where_none_keeps_it_the_lowest_worst_latency_counts(chosen: Callable[..., tuple[str, str]]) -> None:
    first = {"ds2": (70, 10.0), "flink": (200, 10.0), "sluice": (90, 10.0)}
    second = {"ds2": (1000, 10.0), "flink": (200, 10.0), "sluice": (90, 99.0)}
    assert chosen(first, second) == (
        "sluice",
        "no policy keeps the p95 latency within 60 s; sluice has the lowest worst one, 90.0 s",
    )


def test_a_choice_is_kept_once_and_another_evaluation_makes_the_next_version(
    asked: EvaluationRequest, evaluated: Evaluation, workspace: Workspace
) -> None:
    first = choose(asked, evaluated, "nexmark-q1", workspace, WHEN)
    assert choose(asked, evaluated, "nexmark-q1", workspace, "2027-01-01T00:00:00+00:00") == first
    assert (first.version, first.created_at, first.results) == (1, WHEN, evaluated.results_key)
    assert [w.policy for w in first.winners] == [r.winner.policy for r in evaluated.rankings]
    stricter = asked.model_copy(update={"latency_bound_s": 1e-3})
    second = choose(stricter, evaluated, "nexmark-q1", workspace, WHEN)
    assert second.version == 2
    assert latest_choice(workspace, "nexmark-q1") == second
    assert workspace.exists(choice_key("nexmark-q1", 1))


def test_a_job_without_a_choice_says_how_to_get_one(workspace: Workspace) -> None:
    with pytest.raises(InvalidInput, match=r"no scaling policy was chosen for the job 'q'.*evaluate_policies"):
        latest_choice(workspace, "q")
