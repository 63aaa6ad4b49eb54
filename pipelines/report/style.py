"""The style of all figures of a report."""

from importlib.resources import files
from typing import Final

import plotly.graph_objects as go

BUSYNESS_SCALE: Final = [[0.0, "#e0f2fe"], [0.5, "#38bdf8"], [0.8, "#f59e0b"], [1.0, "#dc2626"]]
MODEL_COLOURS: Final = {"linear": "#2563eb", "log": "#059669", "sqrt": "#d97706"}
PALETTE: Final = (
    "#2563eb", "#059669", "#d97706", "#dc2626", "#7c3aed", "#0891b2", "#be185d", "#65a30d", "#475569", "#b45309",
    "#1d4ed8", "#0f766e",
)  # fmt: skip
LOAD_COLOURS: Final = {"cpu": "#dc2626", "io": "#2563eb", "net": "#059669"}
TARGET: Final = "#dc2626"
NEUTRAL: Final = "#94a3b8"


def theme_script() -> str:
    """The script that draws figures in the colours of the page's scheme, light or dark."""
    return files("pipelines.report").joinpath("theme.js").read_text(encoding="utf-8")


def memory_colour(order: int) -> str:
    """The colour of measurements with the `order`-th smallest memory size; different from those of models."""
    return PALETTE[(order + 3) % len(PALETTE)]


def layout(figure: go.Figure, title: str, height: int = 420) -> go.Figure:
    """Set a figure's fonts, margins and title; returns the same figure."""
    figure.update_annotations(font_size=12)
    return figure.update_layout(
        title={"text": title, "font": {"size": 15}, "x": 0.01},
        template="plotly_white",
        height=height,
        margin={"l": 60, "r": 20, "t": 50, "b": 90},
        font={"family": "system-ui, sans-serif", "size": 12, "color": "#0f172a"},
        legend={"orientation": "h", "yref": "container", "y": 0.01, "yanchor": "bottom"},
    )
