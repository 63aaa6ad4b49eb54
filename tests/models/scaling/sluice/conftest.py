"""A job of three operators whose figures can be reckoned by hand."""

from collections.abc import Callable

import pytest

from models.scaling.rates import OperatorMetrics, Rates

COST_S = {"source": 1e-4, "map": 1e-3, "sink": 2e-4}
"""Useful task-seconds of a source record."""


@pytest.fixture(scope="session")
def rates() -> Callable[..., Rates]:
    """Rates of a job that reads `read` of the `arriving` records/s, with `tasks` = (source, map, sink)."""

    def make(
        arriving: float,
        tasks: tuple[int, int, int],
        read: float | None = None,
        lag: float = 0.0,
        **of_map: float | None,
    ) -> Rates:
        reads = arriving if read is None else read
        operators = {}
        for (name, cost), p in zip(COST_S.items(), tasks, strict=True):
            operators[name] = OperatorMetrics(
                parallelism=p,
                true_processing_rate=p / cost,
                true_output_rate=p / cost,
                observed_input_rate=reads,
                observed_output_rate=reads,
                busyness=min(1.0, reads * cost / p),
                lag_records=lag if name == "source" else None,
                **(of_map if name == "map" else {}),  # type: ignore[arg-type]
            )
        return Rates(edges=(("source", "map"), ("map", "sink")), source_rates={"source": arriving}, operators=operators)

    return make
