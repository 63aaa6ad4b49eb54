"""A capacity model as a fitted scikit-learn estimator over the columns memory_mb and task_slots, for use from MLflow.

It is made of scikit-learn's and numpy's own parts only, so skops loads it without further trusted types. It predicts
the central MST. A regression is one exactly. For stacked laws log MST is a straight line in log(memory), and
interpolated between knots in log(task slots): a network with one rectifier for each knot is such a function, and needs
no training. A twin's memory is no straight line; there its slope around the measured memory is taken.
"""

from typing import TYPE_CHECKING, Final

import numpy as np

from models.capacity.growth.capacity_model import CapacityModel
from models.capacity.growth.curves import DrawnCurves
from models.capacity.growth.regressions import Regression

if TYPE_CHECKING:
    from sklearn.base import BaseEstimator
    from sklearn.preprocessing import FunctionTransformer

COLUMNS: Final = ("memory_mb", "task_slots")
KNOTS: Final = np.unique(np.concatenate([np.arange(1.0, 65.0), np.round(np.geomspace(64, 1e6, 102))]))
"""Task slots at which the estimator is the model: all that testbeds have, then 24 for each factor of ten."""
_PHI: Final = {"linear": np.positive, "log": np.log1p, "sqrt": np.sqrt}


def to_estimator(model: CapacityModel) -> "BaseEstimator":
    """The estimator of the central MST, records/s."""
    return _stacked(model) if model.regression is None else _regression(model.regression)


def _regression(regression: Regression) -> "BaseEstimator":
    # Imported here because scikit-learn takes a second to import, and sizing does without it.
    from sklearn.linear_model import LinearRegression
    from sklearn.pipeline import Pipeline

    line = LinearRegression()
    line.coef_ = np.array([regression.memory, regression.slots])
    line.intercept_, line.n_features_in_ = regression.intercept, len(COLUMNS)
    return Pipeline([("transform", _transformer(_PHI[regression.law])), ("regression", line)])


def _stacked(model: CapacityModel) -> "BaseEstimator":
    from sklearn.compose import TransformedTargetRegressor
    from sklearn.pipeline import Pipeline
    from sklearn.preprocessing import FunctionTransformer

    pipeline = Pipeline([("transform", _transformer(np.log)), ("curve", _curve(model))])
    estimator = TransformedTargetRegressor(pipeline, func=np.log, inverse_func=np.exp, check_inverse=False)
    estimator.regressor_, estimator._training_dim = pipeline, 1
    estimator.transformer_ = FunctionTransformer(np.log, np.exp, validate=True, check_inverse=False)
    return estimator


def _curve(model: CapacityModel) -> "BaseEstimator":
    """log MST = start + sum_k bend_k max(0, log n - knot_k) + effect log M."""
    from sklearn.neural_network import MLPRegressor

    knots = np.log(KNOTS)
    middle = next(c.predicts.memory_mb for c in model.components if isinstance(c.predicts, DrawnCurves))
    less, at, more = (np.log(model.predict(middle * factor, KNOTS)) for factor in (0.5, 1.0, 2.0))
    slopes = np.diff(at) / np.diff(knots)
    effect = float(np.median(more - less)) / np.log(4)
    # The last two units are log M where it is above 0, and where it is below.
    units = len(slopes) + 2
    weights, thresholds = np.zeros((2, units)), np.zeros(units)
    weights[1, :-2], thresholds[:-2] = 1.0, -knots[:-1]
    weights[0, -2:] = 1.0, -1.0
    bends = np.concatenate([slopes[:1], np.diff(slopes), [effect, -effect]])
    network = MLPRegressor(hidden_layer_sizes=(units,), activation="relu")
    start = at[:1] - effect * np.log(middle)
    network.coefs_, network.intercepts_ = [weights, bends[:, None]], [thresholds, start]
    network.n_layers_, network.n_outputs_, network.n_features_in_ = 3, 1, len(COLUMNS)
    network.out_activation_ = "identity"
    return network


def _transformer(function: np.ufunc) -> "FunctionTransformer":
    from sklearn.preprocessing import FunctionTransformer

    transform = FunctionTransformer(function, validate=True, feature_names_out="one-to-one")
    transform.n_features_in_, transform.feature_names_in_ = len(COLUMNS), np.array(COLUMNS, dtype=object)
    return transform
