"""What the pictures of a selection say, before they are drawn, and that they can be drawn."""

import io

import numpy as np
import pytest

from models.capacity.growth.dataset import Dataset
from models.capacity.growth.regressions import fit_regression, loocv_rmse
from models.capacity.growth.shapes import LAWS
from models.capacity.observation import Observation
from models.capacity.selection import Selection, select
from pipelines.registry.figures import (
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


@pytest.fixture(scope="module")
def stacked(dataset: Dataset) -> Selection:
    return select(dataset)


def test_the_fit_shows_every_point_once_and_the_curve_of_its_memory(dataset: Dataset) -> None:
    info = fit_info(select(dataset, forced="log").model, dataset)
    assert [c.memory_mb for c in info.curves] == [32768.0, 65536.0]
    assert sorted(y for c in info.curves for y in c.mst) == sorted(dataset.mst)
    curve = info.curves[0]
    assert (curve.curve_slots[0], curve.curve_slots[-1]) == (9.0, 60.0), "from the fewest to a quarter more than 48"
    assert curve.curve_mst[-1] == pytest.approx(float(fit_regression("log", dataset).predict(32768.0, 60.0)))


def test_residuals_are_those_of_leave_one_out(dataset: Dataset) -> None:
    info = residual_info(select(dataset, forced="sqrt"), dataset)
    assert np.sqrt(np.mean(np.square(info.residuals))) == pytest.approx(loocv_rmse("sqrt", dataset))


def test_errors_and_weights_keep_their_laws(stacked: Selection) -> None:
    info = error_info(stacked)
    assert (info.laws, info.chosen) == (LAWS, "stacked")
    assert info.loocv == tuple(stacked.candidates[law].loocv_rmse for law in LAWS)
    assert sum(info.weights) == pytest.approx(1.0)


def test_figures_are_drawn_without_a_display(dataset: Dataset, stacked: Selection) -> None:
    figures = [
        fit_figure(fit_info(stacked.model, dataset)),
        residual_figure(residual_info(stacked, dataset)),
        error_figure(error_info(stacked)),
    ]
    for figure in figures:
        png = io.BytesIO()
        figure.savefig(png)
        assert png.getvalue().startswith(b"\x89PNG")
