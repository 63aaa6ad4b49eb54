"""The verdict's rule, and its sentence."""

from collections.abc import Mapping

import pytest

from pipelines.arena.scoring.runs import SettingRuns
from pipelines.arena.scoring.scores import GroupScore
from pipelines.arena.scoring.verdict import verdict

Figures = Mapping[str, tuple[tuple[float, ...], float]]
"""Of each policy its task-hours by seed, and its late share."""


def group(workload: str, figures: Figures, objective_s: int = 10) -> GroupScore:
    runs = {p: [SettingRuns(1.0, hours, (late,) * len(hours))] for p, (hours, late) in figures.items()}
    return GroupScore.of("q5", workload, objective_s, 0.99, runs)


def test_the_cheapest_that_holds_it_is_to_be_run() -> None:
    found = verdict(
        [group("cosine", {"ds2": ((100, 100), 0.0), "sluice": ((92, 84), 0.0), "hpa-cpu": ((50, 50), 0.3)})]
    )
    assert found.order == ("sluice", "ds2", "hpa-cpu")
    assert found.held == {"sluice": 1, "ds2": 1, "hpa-cpu": 0}
    assert found.sentence == (
        "Run sluice: it holds 99 % of records within 10 s with 12 % fewer task-hours than ds2, the next best "
        "(8 to 16 % over 2 seeds)."
    )


def test_holding_it_more_often_counts_before_the_cost() -> None:
    both = {"ds2": ((10, 10), 0.0), "sluice": ((20, 20), 0.0)}
    found = verdict([group("cosine", both), group("steps", {"ds2": ((10, 10), 0.2), "sluice": ((20, 20), 0.0)})])
    assert found.policy == "sluice"
    assert found.sentence == (
        "Run sluice: it holds 99 % of records within 10 s with 100 % more task-hours than ds2, the next best, which holds "
        "it in 1 (100 % over 2 seeds)."
    )


def test_what_nothing_holds_and_what_others_hold_is_named() -> None:
    good = {"ds2": ((10,), 0.5), "sluice": ((20,), 0.0)}
    other = {"ds2": ((10,), 0.0), "sluice": ((20,), 0.5)}
    none = {"ds2": ((10,), 0.5), "sluice": ((20,), 0.5)}
    found = verdict([group("a", good, 60), group("b", good, 60), group("c", other, 60), group("random", none, 60)])
    assert found.sentence == (
        "Run sluice: it holds 99 % of records within 60 s in 2 of 4 cells, where ds2, the next best, does not; nothing "
        "holds it on q5 random; others hold it on q5 c."
    )


@pytest.mark.parametrize(
    ("figures", "sentence"),
    [
        ({"ds2": ((10,), 0.5), "sluice": ((20,), 0.02)},
         "No policy holds 99 % of records within 10 s: sluice comes closest, with 2 % late."),
        ({"ds2": ((10,), 0.0)}, "Run ds2: it holds 99 % of records within 10 s with 10.0 task-hours, and was replayed alone."),
        ({"ds2": ((10,), 0.0), "sluice": ((9,), 0.0)},
         "Run sluice: it holds 99 % of records within 10 s with 10 % fewer task-hours than ds2, the next best (one seed, so "
         "this may be chance)."),
        ({"ds2": ((10, 10), 0.0), "sluice": ((8, 11), 0.0)},
         "Run sluice: it holds 99 % of records within 10 s with 5 % fewer task-hours than ds2, the next best (20 % fewer to "
         "10 % more over 2 seeds, so this may be chance)."),
    ],
)  # fmt: skip
def test_a_verdict_says_how_sure_it_is(figures: Figures, sentence: str) -> None:
    assert verdict([group("random", figures)]).sentence == sentence


def test_of_many_groups_three_are_named() -> None:
    none = {"ds2": ((10,), 0.5)}
    groups = [group("held", {"ds2": ((10,), 0.0)}), *(group(str(i), none) for i in range(5))]
    assert verdict(groups).sentence.endswith("; nothing holds it on q5 0, q5 1, q5 2 and 2 more.")


def test_hypervolumes_are_ranked_and_equal_ones_share_a_rank() -> None:
    made = group("w", {"a": ((10,), 0.0), "b": ((20,), 0.0), "c": ((10,), 0.0), "d": ((5,), 0.0)})
    assert {s.policy: s.hypervolume_rank for s in made.policies} == {"d": 1, "a": 2, "c": 2, "b": 4}
    assert made.score("d").hypervolume == pytest.approx(1 - 5 / 22)  # the reference is a tenth beyond 20
