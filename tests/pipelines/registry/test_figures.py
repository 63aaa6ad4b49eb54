"""What the pictures of a selection say, before they are drawn, and that they can be drawn."""

import io

import numpy as np
import pytest
from models.capacity.surrogates import Dataset, fit, loocv_rmse

from models.capacity.observation import Observation
from pipelines.registry.figures import (
    ErrorInfo,
    error_figure,
    error_info,
    fit_figure,
    fit_info,
    residual_figure,
    residual_info,
)


@pytest.fixture(scope="module")
def dataset(q5_observations: tuple[Observation, ...]) -> Dataset:
    return Dataset.of(q5_observations[:14])


def test_the_fit_shows_every_point_once_and_the_curve_of_its_memory(dataset: Dataset) -> None:
    info = fit_info("log", dataset)
    assert [c.memory_mb for c in info.curves] == [32768.0, 65536.0]
    assert sorted(y for c in info.curves for y in c.mst) == sorted(dataset.mst)
    curve = info.curves[0]
    assert (curve.curve_slots[0], curve.curve_slots[-1]) == (1.0, 60.0), "from one slot to a quarter more than 48"
    assert curve.curve_mst[-1] == pytest.approx(float(fit("log", dataset).predict(32768.0, 60.0)))


def test_residuals_are_those_of_leave_one_out(dataset: Dataset) -> None:
    info = residual_info("sqrt", dataset)
    assert np.sqrt(np.mean(np.square(info.residuals))) == pytest.approx(loocv_rmse("sqrt", dataset))


def test_errors_keep_their_candidates() -> None:
    info = error_info({"linear": 3.0, "log": 1.0}, {"log": 2.0, "linear": 4.0}, "log")
    assert info == ErrorInfo(("linear", "log"), (3.0, 1.0), (4.0, 2.0), "log")
    assert error_info({"linear": 3.0}, {}, "linear").extrapolation is None


def test_figures_are_drawn_without_a_display(dataset: Dataset) -> None:
    figures = [
        fit_figure(fit_info("log", dataset)),
        residual_figure(residual_info("log", dataset)),
        error_figure(error_info({"log": 1.0}, {}, "log")),
    ]
    for figure in figures:
        png = io.BytesIO()
        figure.savefig(png)
        assert png.getvalue().startswith(b"\x89PNG")
