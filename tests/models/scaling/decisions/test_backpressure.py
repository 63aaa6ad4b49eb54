"""Bottlenecks of a diamond: source -> (a, b) -> sink."""

import pytest

from models.errors import InvalidInput
from models.scaling.decisions.backpressure import bottlenecks, measured
from models.scaling.rates import Rates


def diamond(**backpressure: float) -> Rates:
    quiet = {"parallelism": 1, "true_processing_rate": 1.0, "true_output_rate": 1.0}
    return Rates.model_validate(
        {
            "edges": [["source", "a"], ["source", "b"], ["a", "sink"], ["b", "sink"]],
            "source_rates": {"source": 1.0},
            "operators": {name: {**quiet, "backpressure": backpressure.get(name)} for name in ("a", "b", "sink")},
        }
    )


@pytest.mark.parametrize(
    ("backpressured", "lagging", "expected"),
    [
        ((), (), ()),
        (("source",), (), ("a", "b")),
        (("source", "a"), (), ("b", "sink")),
        (("source", "a", "b"), (), ("sink",)),
        (("a",), (), ("sink",)),
        ((), ("source",), ("source",)),
        (("source", "b"), ("source",), ("a", "sink")),
        (("source", "a", "b", "sink"), (), ()),
    ],
)
def test_a_bottleneck_is_not_held_up_while_one_upstream_of_it_is(backpressured, lagging, expected):
    assert bottlenecks(diamond(), backpressured, lagging) == expected


def test_metrics_are_read_by_operator_and_missing_ones_named():
    rates = diamond(a=0.25, b=0.0)
    assert measured(rates, "backpressure", ["a", "b"], "dhalion") == {"a": 0.25, "b": 0.0}
    with pytest.raises(InvalidInput, match="'backpressure', which is missing for 'source', 'sink'; add it"):
        measured(rates, "backpressure", rates.order, "dhalion")
    with pytest.raises(InvalidInput, match=r"missing for 'x0', 'x1', 'x2', 'x3', 'x4', \.\.\.; add it"):
        measured(rates, "backpressure", [f"x{i}" for i in range(9)], "dhalion")
