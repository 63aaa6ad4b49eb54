import pytest

from models.errors import InvalidInput
from pipelines.cli.options.settings import settings_by_policy


def test_settings_are_json_or_text() -> None:
    texts = ["ds2.activation=median", "ds2.policy_interval_s=60", "flink.job.autoscaler.utilization.target=0.6"]
    assert settings_by_policy(texts) == {
        "ds2": {"activation": "median", "policy_interval_s": 60},
        "flink": {"job.autoscaler.utilization.target": 0.6},
    }
    with pytest.raises(InvalidInput, match="'a' appears twice"):
        settings_by_policy(["ds2.a=1", "ds2.a=2"])
