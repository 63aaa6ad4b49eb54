"""Which model a run plans with: the champion, unless it was asked for another or cannot be compared."""

from collections.abc import Callable

from pipelines.cli import run
from pipelines.planning_model import planning_model
from pipelines.registry import load_champion
from pipelines.review import review
from pipelines.run import PipelineRun
from pipelines.selection import select

ExploredRun = Callable[..., PipelineRun]


def reviewed(run: PipelineRun) -> PipelineRun:
    select(run)
    review(run)
    return run


def test_a_run_plans_with_the_champion_even_if_its_own_model_is_not(explored: ExploredRun) -> None:
    first = reviewed(explored("first", observations=22))
    second = reviewed(explored("second", observations=14))
    champion = load_champion(first.workspace, "nexmark-q5").uri
    for planned in (first, second):
        chosen = planning_model(planned)
        assert (chosen.uri, chosen.reason) == (champion, f"planned with the champion {champion}")


def test_a_model_that_was_asked_for_is_used_whatever_the_review_says(explored: ExploredRun) -> None:
    reviewed(explored("first", observations=22))
    forced = reviewed(explored("second", observations=22, model="linear"))
    chosen = planning_model(forced)
    assert (chosen.uri, chosen.surrogate.name) == ("models:/nexmark-q5/2", "linear")
    assert "asked for linear" in chosen.reason


def test_a_champion_from_another_testbed_is_not_used(explored: ExploredRun) -> None:
    first = reviewed(explored("first", observations=22))
    recorded = reviewed(explored("second", observations=22, testbed="recorded", measurements="search.csv"))
    assert run(["models", "promote", "nexmark-q5@1", "--workspace", str(first.workspace.local_folder())]) == 0
    chosen = planning_model(recorded)
    assert chosen.uri == "models:/nexmark-q5/2"
    assert "the champion models:/nexmark-q5/1 was measured on another testbed (simulator)" in chosen.reason
