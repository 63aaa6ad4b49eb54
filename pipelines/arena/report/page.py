"""The report of an evaluation: one HTML file that needs no network.

Figures are drawn when they come into view, so that a page of many jobs and workloads opens at once.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from jinja2 import Environment, PackageLoader, StrictUndefined, select_autoescape
from plotly.graph_objects import Figure
from plotly.offline import get_plotlyjs

from pipelines.arena.evaluation import Evaluation
from pipelines.arena.grid import Finished
from pipelines.arena.ranking import Ranking
from pipelines.arena.report.curves import Curves, curves, policy_colours, seconds_per_point
from pipelines.arena.report.frontier_figure import frontier_figure, policy_lines
from pipelines.arena.report.time_figure import time_figure
from pipelines.arena.request import EvaluationRequest
from pipelines.arena.scoring.runs import knob_value
from pipelines.report.style import theme_script
from pipelines.store.workspace import Workspace

_TEMPLATES = Environment(
    loader=PackageLoader("pipelines.arena.report", "."), autoescape=select_autoescape(["j2"]), undefined=StrictUndefined
)


@dataclass(frozen=True)
class Section:
    """One job under one workload in one rescale mode."""

    ranking: Ranking
    replays: tuple[Curves, ...]
    """The replays of the first seed and start, each policy with the setting to run."""
    point_s: float
    """The period of a point of a curve, seconds."""

    @property
    def name(self) -> str:
        return self.ranking.name


def sections(request: EvaluationRequest, evaluation: Evaluation, workspace: Workspace) -> list[Section]:
    """In the order of the rankings, the policies of each in the order of the request."""
    return [_section(ranking, _shown(ranking, request, evaluation), workspace) for ranking in evaluation.rankings]


def _shown(ranking: Ranking, request: EvaluationRequest, evaluation: Evaluation) -> list[Finished]:
    """The replays whose curves are drawn."""
    group = (ranking.job, ranking.workload, ranking.rescale_mode)
    chosen = {standing.policy: standing.value for standing in ranking.standings}
    own = [
        one
        for one in evaluation.finished
        if (one.cell.job.name, one.cell.workload.name, one.cell.rescale_mode) == group
        and (one.cell.seed, one.cell.start) == (request.seed, request.starts[0])
        and knob_value(one) == chosen[one.cell.policy]
    ]
    return sorted(own, key=lambda one: request.policies.index(one.cell.policy))


def _section(ranking: Ranking, replays: Sequence[Finished], workspace: Workspace) -> Section:
    traces = [one.trace(workspace) for one in replays]
    drawn = [curves(one.cell.policy, trace, one.rescales) for one, trace in zip(replays, traces, strict=True)]
    return Section(ranking, tuple(drawn), seconds_per_point(max(len(trace) for trace in traces)))


def write_report(request: EvaluationRequest, evaluation: Evaluation, workspace: Workspace) -> str:
    """Store the report beside the evaluation's results; returns its key in the workspace."""
    key = report_key(evaluation)
    workspace.write_bytes(key, render(request, evaluation, workspace).encode())
    return key


def report_key(evaluation: Evaluation) -> str:
    """Workspace key of an evaluation's report."""
    return f"{evaluation.results_key.rpartition('/')[0]}/report.html"


def render(request: EvaluationRequest, evaluation: Evaluation, workspace: Workspace) -> str:
    """One self-contained HTML document: scripts, styles and data are in it, nothing is loaded from elsewhere."""
    made = sections(request, evaluation, workspace)
    figures: dict[str, Figure] = {}
    for index, section in enumerate(made):
        group = section.ranking.group
        lines = policy_lines(group, request.policies)
        figures[f"frontier-{index}"] = frontier_figure(lines, group.objective_s, group.attainment)
        figures[f"time-{index}"] = time_figure(section.replays, group.objective_s)
    template = _TEMPLATES.get_template("evaluation.html.j2")
    return template.render(
        request=request,
        sections=made,
        verdicts=evaluation.verdicts,
        colours=policy_colours(request.policies),
        converges=any(s.convergence_steps or s.convergence_s is not None for m in made for s in m.ranking.standings),
        figures={name: _embedded(figure) for name, figure in figures.items()},
        heights={name: figure.layout.height for name, figure in figures.items()},
        plotly_js=get_plotlyjs(),
        theme_js=theme_script(),
    )


def _embedded(figure: Figure) -> str:
    """JSON that cannot close its script element."""
    return str(figure.to_json()).replace("<", "\\u003c")
