"""Colours of the figures on a dark page."""

import json
import re
from pathlib import Path

import pytest
from plotly.colors import hex_to_rgb

import pipelines.report
from pipelines.report.style import BUSYNESS_SCALE, LOAD_COLOURS, MODEL_COLOURS, NEUTRAL, PALETTE, TARGET

LINES = (*PALETTE, *LOAD_COLOURS.values(), *MODEL_COLOURS.values(), NEUTRAL, TARGET)
LEAST_CONTRAST = 3.0
"""Of graphics with what is beside them (WCAG 2.2, 1.4.11)."""


@pytest.fixture
def dark() -> dict[str, str]:
    script = (Path(pipelines.report.__file__).parent / "theme.js").read_text()
    found = re.search(r"DARK_COLOURS = ({.*?});", script, re.DOTALL)
    assert found is not None
    colours: dict[str, str] = json.loads(re.sub(r",\s*}", "}", found[1]))
    return colours


def _luminance(colour: str) -> float:
    """Relative luminance (WCAG 2.2)."""
    parts = [part / 255 for part in hex_to_rgb(colour)]
    red, green, blue = (p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def _contrast(one: str, other: str) -> float:
    darker, lighter = sorted((_luminance(one), _luminance(other)))
    return (lighter + 0.05) / (darker + 0.05)


def test_the_contrast_of_black_and_white_is_21() -> None:
    assert _contrast("#000000", "#ffffff") == pytest.approx(21)


def test_every_colour_of_a_figure_has_a_dark_counterpart_that_stands_out(dark: dict[str, str]) -> None:
    page = dark["white"]
    for colour in LINES:
        assert _contrast(dark[colour], page) >= LEAST_CONTRAST, colour
    assert _contrast(dark["#0f172a"], page) >= 7, "text"
    assert {colour for _, colour in BUSYNESS_SCALE} <= set(dark)


def test_different_colours_stay_different(dark: dict[str, str]) -> None:
    assert len({dark[colour] for colour in PALETTE}) == len(PALETTE)
