"""The figure of frontiers: what is on them, and what is not."""

from pipelines.arena.report.frontier_figure import frontier_figure, policy_lines
from pipelines.arena.scoring.frontier import LEAST_LATE
from pipelines.arena.scoring.runs import SettingRuns
from pipelines.arena.scoring.scores import GroupScore


def test_points_on_the_frontier_are_joined_and_dominated_ones_are_beside_it() -> None:
    ds2 = [SettingRuns(0.0, (10.0,), (0.5,)), SettingRuns(0.1, (12.0,), (0.6,)), SettingRuns(0.2, (20.0,), (0.0,))]
    group = GroupScore.of("q", "w", 10, 0.99, {"ds2": ds2, "static": [SettingRuns(1.0, (30.0,), (0.0,))]})
    lines = policy_lines(group, ["static", "ds2"])
    assert [line.policy for line in lines] == ["static", "ds2"]
    assert [p.value for p in lines[1].front] == [0.0, 0.2] and [p.value for p in lines[1].dominated] == [0.1]
    figure = frontier_figure(lines, 10, 0.99)
    assert [trace.meta for trace in figure.data] == ["static", "ds2", "ds2"]
    assert list(figure.data[1].y) == [0.5, LEAST_LATE]
    assert figure.data[1].hovertext[1] == "ds2, over_provisioning_factor 0.2: 0.000% late, 20.0 task-hours"


def test_names_stand_apart() -> None:
    # Both begin at the same point; the second name stands at the other end of its frontier.
    both = {name: [SettingRuns(0.0, (10.0,), (0.5,)), SettingRuns(1.0, (20.0,), (0.0,))] for name in ("ds2", "static")}
    figure = frontier_figure(policy_lines(GroupScore.of("q", "w", 10, 0.99, both), ["ds2", "static"]), 10, 0.99)
    assert [tuple(trace.text) for trace in figure.data] == [("ds2", ""), ("", "static")]
