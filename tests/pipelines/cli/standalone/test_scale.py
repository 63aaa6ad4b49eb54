"""`sluice scale` on files, through the command's own entry point."""

import json
from pathlib import Path

import pytest

from models.scaling.policies import POLICIES
from pipelines.cli import EXIT_USAGE, run

WORD_COUNT = {
    "edges": [["source", "flatmap"], ["flatmap", "count"]],
    "source_rates": {"source": 1000000.0},
    "operators": {
        "flatmap": {"parallelism": 1, "true_processing_rate": 100000.0, "true_output_rate": 2000000.0, "memory_mb": 64},
        "count": {"parallelism": 1, "true_processing_rate": 1000000.0, "true_output_rate": 0.0},
    },
}
"""DS2 section 5.2, rates per minute."""


@pytest.fixture
def rates(tmp_path: Path) -> Path:
    path = tmp_path / "rates.json"
    path.write_text(json.dumps(WORD_COUNT))
    return path


def test_word_count_is_scaled_in_one_step(capsys, rates):
    assert run(["scale", "--policy", "ds2", str(rates), "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["parallelism"] == {"flatmap": 10, "count": 20}
    assert answer["exact"] == {"flatmap": 10.0, "count": 20.0}
    assert answer["memory_mb"] == {"flatmap": 64.0}


def test_people_see_before_after_and_why(capsys, rates):
    assert run(["scale", str(rates)]) == 0
    row = next(line for line in capsys.readouterr().out.splitlines() if "flatmap" in line)
    assert row.split()[:5] == ["flatmap", "1", "10", "10.000", "64"]


def test_a_policy_that_does_not_exist_is_refused(capsys, rates):
    assert run(["scale", "--policy", "guess", str(rates)]) == EXIT_USAGE
    assert "there is no policy 'guess'; there are 'dhalion', 'ds2'" in capsys.readouterr().err


def _measured(rates: Path) -> None:
    """Add to the rates what policies that do not go by true rates decide by: all tasks wait half of the time."""
    document = json.loads(rates.read_text())
    shares = {"busyness": 0.5, "backpressure": 0.0, "idleness": 0.5, "input_queue_share": 0.1, "cpu_cores": 0.5}
    for metrics in document["operators"].values():
        metrics |= shares | {"observed_input_rate": 50000.0, "observed_output_rate": 50000.0}
    document["operators"]["source"] = shares | {
        "parallelism": 1,
        "true_processing_rate": 2000000.0,
        "true_output_rate": 2000000.0,
        "observed_input_rate": 1000000.0,
        "observed_output_rate": 1000000.0,
        "lag_records": 0.0,
        "lag_change_per_s": 0.0,
    }
    rates.write_text(json.dumps(document))


@pytest.mark.parametrize("policy", POLICIES)
def test_every_policy_decides_from_one_window(capsys, rates, policy):
    _measured(rates)
    assert run(["scale", "--policy", policy, str(rates), "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["policy"] == policy
    assert set(answer["parallelism"]) >= {"flatmap", "count"}
    assert answer["exact"].keys() <= answer["parallelism"].keys() == answer["reasons"].keys()
    assert run(["scale", "--policy", policy, str(rates)]) == 0


def test_settings_change_a_decision(capsys, rates):
    assert run(["scale", str(rates), "--set", "over_provisioning_factor=0.2", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["parallelism"] == {"flatmap": 12, "count": 24}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("factor", "--set must be SETTING=VALUE"),
        ("factor=2", "policy 'ds2' has no setting 'factor'"),
        ("over_provisioning_factor=much", "over_provisioning_factor"),
    ],
)
def test_unusable_settings_are_refused(capsys, rates, text, message):
    assert run(["scale", str(rates), "--set", text]) == EXIT_USAGE
    assert message in capsys.readouterr().err


def test_a_policy_that_lacks_a_metric_says_which(capsys, rates):
    assert run(["scale", "--policy", "hpa-cpu", str(rates)]) == EXIT_USAGE
    assert "decides by 'cpu_cores', which is missing for 'flatmap'" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('"flatmap": {', '"flatmop": {', "operator 'flatmop' is on no edge"),
        ('"true_processing_rate": 100000.0', '"true_processing_rate": -1', "operators.flatmap.true_processing_rate"),
        ('"parallelism": 1', '"parallelism": 0', "operators.flatmap.parallelism"),
        ('"source": 1000000.0', '"source": 1000000.0, "count": 3', "'count', which is no source"),
        ('"memory_mb"', '"memory"', "operators.flatmap.memory"),
        ('"edges"', '"edge"', "edge"),
        ("{", "[", "not valid JSON"),
    ],
)
def test_unusable_rates_are_named(capsys, rates, old, new, message):
    rates.write_text(rates.read_text().replace(old, new, 1))
    assert run(["scale", str(rates)]) == EXIT_USAGE
    assert message in capsys.readouterr().err
