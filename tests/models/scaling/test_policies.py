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
