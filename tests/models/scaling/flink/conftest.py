"""Dataflows to decide about."""

from collections.abc import Callable

import pytest

from models.scaling.rates import Rates


@pytest.fixture
def two_operators() -> Callable[..., Rates]:
    """A source at `target` records/s and one operator `work`, whose metrics are given."""

    def rates(target: float, *, parallelism: int, true_rate: float, **more: object) -> Rates:
        return Rates.model_validate(
            {
                "edges": [("source", "work")],
                "source_rates": {"source": target},
                "operators": {"work": {"parallelism": parallelism, "true_processing_rate": true_rate, **more}},
            }
        )

    return rates
