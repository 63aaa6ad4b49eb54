"""The registry of scaling policies: names, settings, and messages for unknown ones."""

import pytest

from models.errors import InvalidInput
from models.scaling.policies import POLICIES, make_policy


@pytest.mark.parametrize("name", POLICIES)
def test_a_policy_is_registered_under_its_name_with_defaults_for_all_settings(name):
    assert make_policy(name).name == name == POLICIES[name].name
    assert POLICIES[name].title
    for field in POLICIES[name].settings.model_fields.values():
        assert field.description
        assert not field.is_required()


def test_an_unknown_policy_or_setting_is_answered_with_the_known_ones():
    with pytest.raises(InvalidInput, match=r"no policy 'autopilot'; there are .*'ds2'.*'justin'"):
        make_policy("autopilot")
    with pytest.raises(InvalidInput, match=r"'ds2' has no setting 'patience'; it has .*'warm_up_intervals'"):
        make_policy("ds2", {"patience": 3})
    with pytest.raises(InvalidInput, match="policy_interval_s: Input should be a multiple of 5"):
        make_policy("ds2", {"policy_interval_s": 7})
    assert make_policy("ds2", {"policy_interval_s": 10}).interval_s == 10.0


@pytest.mark.parametrize("name", POLICIES)
def test_a_knob_is_a_setting_with_values_that_its_policy_accepts(name):
    kind = POLICIES[name]
    assert kind.knob.setting in kind.setting_names and len(set(kind.knob.values)) >= 4
    for value in kind.knob.values:
        settings = kind.with_knob({}, value)
        assert kind.policy(settings) and kind.knob_value(settings) == value
    assert kind.knob_value({}) == kind.settings().model_dump()[kind._field(kind.knob.setting)]


def test_a_knob_replaces_the_setting_under_each_of_its_names():
    settings = {"job.autoscaler.utilization.target": 0.5, "metrics.window": 60}
    assert POLICIES["flink"].knob_value(settings) == 0.5
    assert POLICIES["flink"].with_knob(settings, 0.4) == {"metrics.window": 60, "utilization.target": 0.4}
