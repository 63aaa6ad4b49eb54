"""What the sources read against what arrives."""

import pytest

from models.scaling.ds2.throughput import throughput
from models.scaling.rates import OperatorMetrics, Rates


def read_by(source: dict[str, float], **more: object) -> Rates:
    """10,000 records/s arrive at a source with these rates."""
    return Rates(
        edges=(("source", "calc"),),
        source_rates={"source": 10_000},
        operators={
            "source": OperatorMetrics(parallelism=1, **source),
            "calc": OperatorMetrics(parallelism=1, true_processing_rate=5_000),
        },
        **more,
    )


def test_a_source_that_filters_and_keeps_up_reaches_its_target():
    """It reads all that arrives, and emits a tenth of that."""
    kept_up = {"observed_input_rate": 10_000.0, "observed_output_rate": 1_000.0}
    seen = throughput(read_by(kept_up, source_selectivity={"source": 0.1}))
    assert (seen.target, seen.achieved, seen.ratio) == (10_000, pytest.approx(10_000), pytest.approx(1.0))


def test_a_source_that_filters_and_reads_half_misses_its_target():
    half = {"observed_input_rate": 5_000.0, "observed_output_rate": 500.0}
    seen = throughput(read_by(half, source_selectivity={"source": 0.1}))
    assert (seen.achieved, seen.ratio) == pytest.approx((5_000, 2.0))


def test_where_it_is_not_known_what_a_source_emits_of_what_it_reads_that_counts():
    """Of a source with two edges Flink counts each record out twice."""
    seen = throughput(read_by({"observed_input_rate": 10_000.0, "observed_output_rate": 20_000.0}))
    assert (seen.achieved, seen.ratio) == (10_000, 1.0)


def test_a_source_that_reports_only_what_it_emits_counts_with_that():
    assert throughput(read_by({"observed_output_rate": 8_000.0})).ratio == 1.25
