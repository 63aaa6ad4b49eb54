"""The page itself: figures, tables and lineage in one HTML file."""

from collections.abc import Mapping

from jinja2 import Environment, PackageLoader, StrictUndefined, select_autoescape
from plotly.graph_objects import Figure
from plotly.offline import get_plotlyjs

from models.plan.content import Plan
from models.resources.price import in_words
from pipelines.report.capacity import capacity_figure, capacity_info
from pipelines.report.dataflow import dataflow_figure, dataflow_info
from pipelines.report.exploration import exploration_figure, exploration_info
from pipelines.report.front import front_figure, front_info
from pipelines.report.placement import placement_figure, placement_info
from pipelines.report.scaling_curve import curve_figure, curve_info
from pipelines.report.style import theme_script
from pipelines.report.subject import ReportSubject

_TEMPLATES = Environment(
    loader=PackageLoader("pipelines.report", "."), autoescape=select_autoescape(["j2"]), undefined=StrictUndefined
)
_TEMPLATES.filters["usd"] = in_words


def figures(subject: ReportSubject) -> dict[str, Figure]:
    """All figures of a plan's report, by name."""
    return {
        "dataflow": dataflow_figure(dataflow_info(subject)),
        "capacity": capacity_figure(capacity_info(subject)),
        "scaling-curve": curve_figure(curve_info(subject)),
        "placement": placement_figure(placement_info(subject)),
        "front": front_figure(front_info(subject)),
        "exploration": exploration_figure(exploration_info(subject)),
    }


def render(plan: Plan, drawn: Mapping[str, Figure]) -> str:
    """One self-contained HTML document: scripts and styles are included, nothing is loaded from elsewhere.

    Args:
        drawn: the result of `figures` for the plan.
    """
    parts = {
        name: figure.to_html(full_html=False, include_plotlyjs=False, div_id=name, config={"displaylogo": False})
        for name, figure in drawn.items()
    }
    template = _TEMPLATES.get_template("report.html.j2")
    return template.render(plan=plan, figures=parts, plotly_js=get_plotlyjs(), theme_js=theme_script())
