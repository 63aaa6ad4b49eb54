"""docker-compose.yml: health checks, pinned versions, loopback ports, no secrets, and files that exist."""

import re
import stat
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

ONE_SHOT = {"airflow-init"}
SECRETS = {
    "POSTGRES_PASSWORD",
    "AIRFLOW_ADMIN_PASSWORD",
    "AIRFLOW_SECRET_KEY",
    "AIRFLOW_JWT_SECRET",
    "AIRFLOW_FERNET_KEY",
}


@pytest.fixture(scope="module")
def compose(root: Path) -> dict[str, Any]:
    return yaml.safe_load((root / "docker-compose.yml").read_text())


@pytest.fixture(scope="module")
def services(compose: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return compose["services"]


def test_every_part_is_there(services: dict[str, Any]) -> None:
    airflow = {f"airflow-{part}" for part in ("init", "api-server", "scheduler", "dag-processor", "triggerer")}
    assert set(services) == {"postgres", "mlflow", "spark-master", "spark-worker"} | airflow


def test_every_lasting_service_has_a_health_check(services: dict[str, Any]) -> None:
    assert {name for name, service in services.items() if "healthcheck" not in service} == ONE_SHOT
    for name in ONE_SHOT:
        assert services[name]["restart"] == "no"


def test_services_wait_for_what_they_need(services: dict[str, Any]) -> None:
    for name, service in services.items():
        for needed, how in service.get("depends_on", {}).items():
            assert how["condition"] == (
                "service_completed_successfully" if needed in ONE_SHOT else "service_healthy"
            ), f"{name} -> {needed}"


def test_images_are_pinned(root: Path, services: dict[str, Any]) -> None:
    dockerfile = (root / "docker" / "Dockerfile").read_text()
    images = [service["image"] for service in services.values()]
    images += re.findall(r"^(?:FROM|COPY --from=)\s*(\S+)", dockerfile.replace("--from=", "--from= "), re.MULTILINE)
    assert len(images) > len(services)
    for image in images:
        assert re.search(r":\d+\.\d+", image), image


def test_the_image_runs_as_a_user_of_its_own_from_the_lock(root: Path) -> None:
    dockerfile = (root / "docker" / "Dockerfile").read_text()
    assert re.findall(r"^USER (\S+)", dockerfile, re.MULTILINE) == ["sluice"]
    syncs = re.findall(r"uv sync (.*)", dockerfile)
    assert syncs and all("--frozen" in arguments for arguments in syncs)


def test_the_image_pins_the_uv_that_the_set_up_pins(root: Path) -> None:
    pinned = re.search(r"UV_VERSION=(\S+)", (root / ".ci" / "setup").read_text()).group(1)
    assert f"astral-sh/uv:{pinned} " in (root / "docker" / "Dockerfile").read_text()


def test_ports_are_bound_to_loopback(services: dict[str, Any]) -> None:
    ports = [port for service in services.values() for port in service.get("ports", [])]
    assert ports and all(port.startswith("127.0.0.1:") for port in ports)
    hosts = [port.split(":")[1] for port in ports]
    assert len(hosts) == len(set(hosts))


def test_secrets_come_from_the_environment_alone(root: Path, services: dict[str, Any]) -> None:
    text = (root / "docker-compose.yml").read_text()
    assert set(re.findall(r"\$\{(\w+)\}", text)) == SECRETS
    for service in services.values():
        for key, value in service.get("environment", {}).items():
            if re.search(r"PASSWORD|SECRET|_KEY$|FERNET", key):
                assert re.fullmatch(r"\$\{\w+\}", value), key


def test_what_is_mounted_or_called_exists(root: Path, compose: dict[str, Any], services: dict[str, Any]) -> None:
    for service in services.values():
        for mount in service.get("volumes", []):
            source = mount.split(":")[0]
            assert (root / source).exists() if source.startswith(".") else source in compose["volumes"]
        for word in [*service.get("command", []), *service.get("healthcheck", {}).get("test", [])]:
            if word.startswith("/opt/sluice/"):
                assert (root / word.removeprefix("/opt/sluice/")).stat().st_mode & stat.S_IXUSR, word


def test_make_env_writes_fresh_secrets_once_for_their_owner(root: Path, tmp_path: Path) -> None:
    script = tmp_path / "docker" / "make-env"
    script.parent.mkdir()
    script.write_bytes((root / "docker" / "make-env").read_bytes())
    subprocess.run(["bash", script], check=True, capture_output=True)
    env = tmp_path / ".env"
    values = dict(line.split("=", 1) for line in env.read_text().splitlines())
    assert set(values) == SECRETS
    assert all(len(value) >= 24 for value in values.values())
    assert len(values["AIRFLOW_JWT_SECRET"]) >= 64
    assert stat.S_IMODE(env.stat().st_mode) == 0o600
    subprocess.run(["bash", script], check=True, capture_output=True)
    assert dict(line.split("=", 1) for line in env.read_text().splitlines()) == values
