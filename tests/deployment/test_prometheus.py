"""The ready configuration of Prometheus: valid, complete, and its alerts fire when they should and only then."""

import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

pytestmark = pytest.mark.skipif(
    shutil.which("promtool") is None, reason="Prometheus is not installed; apt-get install prometheus"
)

JOB = 'job_name="q5"'
SOURCE = f'{JOB}, task_name="Source: bids", tm_id="tm_1"'
WORKER = 'instance="flink-taskmanager-1:9249", job="flink"'
ALERTS: dict[str, tuple[str, str, str, dict[str, str], str]] = {
    "FlinkProcessDown": (
        f"up{{{WORKER}}}",
        "1x4 0x20",
        "1x24",
        {"severity": "page", "instance": "flink-taskmanager-1:9249", "job": "flink"},
        "flink-taskmanager-1:9249 does not answer",
    ),
    "FlinkJobRestarting": (
        f"flink_jobmanager_job_numRestarts{{{JOB}}}",
        "0+1x24",
        "1x24",
        {"severity": "page", "job_name": "q5"},
        "job q5 restarted 10 times in 10 minutes",
    ),
    "FlinkCheckpointsFail": (
        f"flink_jobmanager_job_numberOfFailedCheckpoints{{{JOB}}}",
        "0+1x24",
        "3x24",
        {"severity": "page", "job_name": "q5"},
        "15 checkpoints of job q5 failed in 15 minutes",
    ),
    "FlinkOperatorSaturated": (
        f"flink_taskmanager_job_task_busyTimeMsPerSecond{{{SOURCE}}}",
        "1000x24",
        "900x24",
        {"severity": "ticket", "job_name": "q5", "task_name": "Source: bids"},
        "Source: bids of job q5 is busy all the time",
    ),
    "FlinkSourceHeldBack": (
        f"flink_taskmanager_job_task_backPressuredTimeMsPerSecond{{{SOURCE}}}",
        "800x24",
        "100x24",
        {"severity": "ticket", "job_name": "q5", "task_name": "Source: bids"},
        "Source: bids of job q5 is held back half of the time or more",
    ),
    "SluiceAutopilotSilent": (
        f'sluice_autopilot_condition{{{JOB}, sluice_autopilot_condition="silent"}}',
        "1x24",
        "0x24",
        {"severity": "ticket", "job_name": "q5", "sluice_autopilot_condition": "silent"},
        "the autopilot of q5 was killed, or hangs",
    ),
    "SluiceRescaleFailed": (
        f'sluice_autopilot_rescales_total{{{JOB}, outcome="rolled-back"}}',
        "0x9 1x14",
        "1x24",
        {"severity": "ticket", "job_name": "q5", "outcome": "rolled-back"},
        "a rescale of job q5 has the outcome rolled-back",
    ),
    "SluiceMetricsDown": (
        'up{instance="autopilot-metrics:9464", job="sluice"}',
        "1x4 0x20",
        "1x24",
        {"severity": "ticket", "instance": "autopilot-metrics:9464", "job": "sluice"},
        "autopilot-metrics:9464 does not answer, so that no other alert of Sluice can fire",
    ),
    "SluiceLatenessBudgetSpent": (
        f"sluice_autopilot_lateness_budget_spent_ratio{{{JOB}}}",
        "1.25x24",
        "0.99x24",
        {"severity": "ticket", "job_name": "q5"},
        "job q5 has spent 1.25 of its lateness budget",
    ),
    "SluiceApplyFailed": (
        f'sluice_plan_apply_outcome{{{JOB}, sluice_plan_apply_outcome="failed"}}',
        "1x24",
        "0x24",
        {"severity": "page", "job_name": "q5", "sluice_plan_apply_outcome": "failed"},
        "job q5 does not run as planned, and was not put back",
    ),
    "SluiceApplyRolledBack": (
        f'sluice_plan_apply_outcome{{{JOB}, sluice_plan_apply_outcome="rolled-back"}}',
        "1x24",
        "0x24",
        {"severity": "ticket", "job_name": "q5", "sluice_plan_apply_outcome": "rolled-back"},
        "the plan of q5 was rolled back when it was applied",
    ),
    "SluicePlanDrifted": (
        f"sluice_plan_drifted{{{JOB}}}",
        "1x24",
        "0x24",
        {"severity": "ticket", "job_name": "q5"},
        "production of q5 differs from what its plan was measured with",
    ),
    "SluicePlanUnreadable": (
        f"sluice_plan_unreadable{{{JOB}}}",
        "1x24",
        "0x24",
        {"severity": "ticket", "job_name": "q5"},
        "a file of q5 in Sluice's workspace cannot be read",
    ),
    "SluiceModelWaits": (
        f"sluice_models_waiting{{{JOB}}}",
        "2x24",
        "0x24",
        {"severity": "ticket", "job_name": "q5"},
        "2 capacity model(s) of q5 wait for a person",
    ),
    "SluiceModelRegistryDown": (
        "sluice_model_registry_up",
        "0x24",
        "1x24",
        {"severity": "ticket"},
        "MLflow does not answer Sluice",
    ),
}
"""Alert -> series; values by the minute with which it fires after 20 of them, and with which it does not; labels; summary."""


@pytest.fixture(scope="module")
def rules(root: Path) -> dict[str, dict[str, Any]]:
    groups = yaml.safe_load((root / "docker" / "prometheus" / "alerts.yml").read_text())["groups"]
    return {rule["alert"]: rule for group in groups for rule in group["rules"]}


def test_prometheus_takes_the_configuration(root: Path) -> None:
    command = ["promtool", "check", "config", str(root / "docker" / "prometheus" / "prometheus.yml")]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_autopilots_are_scraped_on_the_port_that_compose_serves(root: Path) -> None:
    command = yaml.safe_load((root / "docker-compose.yml").read_text())["services"]["autopilot-metrics"]["command"]
    settings = yaml.safe_load((root / "docker" / "prometheus" / "prometheus.yml").read_text())
    (sluice,) = (job for job in settings["scrape_configs"] if job["job_name"] == "sluice")
    assert sluice["static_configs"] == [{"targets": [f"autopilot-metrics:{command[command.index('--port') + 1]}"]}]


def test_every_flink_process_of_compose_is_scraped(root: Path) -> None:
    services = yaml.safe_load((root / "docker-compose.yml").read_text())["services"]
    settings = yaml.safe_load((root / "docker" / "prometheus" / "prometheus.yml").read_text())
    flink = next(job for job in settings["scrape_configs"] if job["job_name"] == "flink")
    port = yaml.safe_load((root / "docker" / "flink" / "config.yaml").read_text())["metrics.reporter.prom.port"]
    expected = {f"{name}:{port}" for name in services if name.startswith("flink-")}
    assert set(flink["static_configs"][0]["targets"]) == expected


def test_every_alert_is_tested_and_has_a_row_in_the_guide(root: Path, rules: dict[str, Any]) -> None:
    assert set(rules) == set(ALERTS)
    guide = (root / "docs" / "how-to" / "troubleshoot.md").read_text()
    assert [name for name in rules if f"`{name}`" not in guide] == []


@pytest.mark.parametrize("alert", ALERTS)
def test_an_alert_fires_when_it_should_and_only_then(
    root: Path, tmp_path: Path, rules: dict[str, Any], alert: str
) -> None:
    series, wrong, right, labels, summary = ALERTS[alert]
    shutil.copy(root / "docker" / "prometheus" / "alerts.yml", tmp_path)
    fired = {"exp_labels": labels, "exp_annotations": {"summary": summary}}
    cases = []
    for values, expected in ((wrong, [fired]), (right, [])):
        when = {"eval_time": "20m", "alertname": alert, "exp_alerts": expected}
        cases.append(
            {"interval": "1m", "input_series": [{"series": series, "values": values}], "alert_rule_test": [when]}
        )
    (tmp_path / "test.yml").write_text(yaml.safe_dump({"rule_files": ["alerts.yml"], "tests": cases}))
    done = subprocess.run(["promtool", "test", "rules", "test.yml"], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
