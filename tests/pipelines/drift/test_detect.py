"""What of the features is compared."""

from typing import Any

from models.planning.drift import BUSY, CPU, STATE
from pipelines.drift.detect import values_by_operator


def row(run: str, operator: str, state_bytes: float | None) -> dict[str, Any]:
    return {
        "run": run,
        "operator": operator,
        "cpu_s_per_record": 1e-6,
        "state_bytes_per_record": state_bytes,
        "bytes_out_per_record": None,
        "selectivity": None,
        "true_rate_per_task": 1000.0,
    }


def test_state_that_no_operator_of_a_run_touches_was_not_counted() -> None:
    rows = [row("a", "map", 0.0), row("a", "count", 80.0), row("b", "map", 0.0), row("b", "count", 0.0)]
    rest = {CPU: [1e-6, 1e-6], BUSY: [1e-3, 1e-3]}
    assert values_by_operator(rows) == {"map": rest | {STATE: [0.0]}, "count": rest | {STATE: [80.0]}}
