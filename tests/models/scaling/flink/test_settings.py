"""Options go by their public names, and are written as Flink writes them."""

import pytest

from models.errors import InvalidInput
from models.scaling.flink.quantities import memory_size
from models.scaling.flink.settings import AdjustMode, AlignmentMode, FlinkSettings
from models.scaling.policies import make_policy


def test_the_defaults_are_the_operators():
    settings = FlinkSettings()
    said = settings.model_dump(by_alias=True)
    assert {
        "utilization.target": 0.7,
        "target.utilization.boundary": 0.3,
        "metrics.window": 15 * 60.0,
        "stabilization.interval": 5 * 60.0,
        "catch-up.duration": 30 * 60.0,
        "restart.time": 5 * 60.0,
        "restart.time-tracking.enabled": False,
        "restart.time-tracking.limit": 15 * 60.0,
        "scale-down.interval": 3600.0,
        "scale-down.max-factor": 0.6,
        "scale-up.max-factor": 100_000.0,
        "vertex.min-parallelism": 1,
        "vertex.max-parallelism": 200,
        "backlog-processing.lag-threshold": 5 * 60.0,
        "observed-true-processing-rate.lag-threshold": 30.0,
        "observed-true-processing-rate.switch-threshold": 0.15,
        "scaling.effectiveness.threshold": 0.1,
        "observed-scalability.coefficient-min": 0.5,
        "history.max.count": 3,
        "history.max.age": 24 * 3600.0,
        "memory.tuning.overhead": 0.2,
    }.items() <= said.items()
    assert settings.band() == pytest.approx((0.4, 1.0))
    assert settings.alignment is AlignmentMode.BALANCED


@pytest.mark.parametrize(
    ("given", "field", "value"),
    [
        ({"utilization.target": "0.8"}, "utilization_target", 0.8),
        ({"target.utilization": 0.8}, "utilization_target", 0.8),
        ({"job.autoscaler.utilization.target": 0.8}, "utilization_target", 0.8),
        ({"job.autoscaler.scale-up.grace-period": "2 h"}, "scale_down_interval_s", 7200.0),
        ({"metrics.window": "10 min"}, "metrics_window_s", 600.0),
        ({"restart.time": 90}, "restart_time_s", 90.0),
        ({"restart.time": "1500 ms"}, "restart_time_s", 1.5),
        ({"history.max.age": "2d"}, "history_max_age_s", 172_800.0),
        ({"taskmanager.memory.process.size": "2 gb"}, "process_memory", 2 << 30),
        ({"taskmanager.memory.process.size": "1024"}, "process_memory", 1024),
        ({"vertex.exclude.ids": "a; b"}, "vertex_exclude_ids", frozenset({"a", "b"})),
        (
            {"scaling.key-group.partitions.adjust.mode": "MAXIMIZE_UTILISATION"},
            "alignment",
            AdjustMode.MAXIMIZE_UTILISATION,
        ),
    ],
)
def test_public_names_and_units(given, field, value):
    assert getattr(FlinkSettings.model_validate(given), field) == value


def test_the_newer_alignment_option_goes_before_the_older():
    both = {"scaling.parallelism-alignment.mode": "OFF", "scaling.key-group.partitions.adjust.mode": "EVENLY_SPREAD"}
    assert FlinkSettings.model_validate(both).alignment is AlignmentMode.OFF


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"utilisation.target": 0.8}, r"no setting 'utilisation.target'; it has .*'utilization.target'"),
        ({"utilization.target": 1.2}, "utilization.target: Input should be less than or equal to 1"),
        ({"restart.time": "5 fortnights"}, "a duration must end in one of ms, .*but got '5 fortnights'"),
        ({"restart.time": "soon"}, "restart.time: Input should be a valid number"),
        ({"target.utilization": 0.8, "utilization.target": 0.7}, "utilization.target is given twice"),
        (
            {"vertex.min-parallelism": 300},
            "vertex.min-parallelism <= vertex.max-parallelism must hold, but got 300 and 200",
        ),
        ({"metrics.busy-time.aggregator": "MIN"}, "metrics.busy-time.aggregator: Input should be 'MAX' or 'AVG'"),
    ],
)
def test_faulty_options_say_what_must_hold(given, message):
    with pytest.raises(InvalidInput, match=message):
        make_policy("flink", given)


@pytest.mark.parametrize(
    ("size", "text"), [(0, "0 bytes"), (1023, "1023 bytes"), (1 << 20, "1 mb"), (5 << 29, "2560 mb"), (1 << 40, "1 tb")]
)
def test_memory_sizes_in_words(size, text):
    assert memory_size(size) == text
