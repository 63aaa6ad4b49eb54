"""docker-compose.yml: what compose itself says of it, health checks, pinned versions, loopback ports, no secrets, no root."""

import os
import re
import shutil
import stat
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from answering.server import AnsweringServer

ONE_SHOT = {"airflow-init"}
PROFILES = {
    "flink": {"flink-jobmanager", "flink-taskmanager-1", "flink-taskmanager-2"},
    "kafka": {"kafka"},
    "monitoring": {"autopilot-metrics", "prometheus"},
    "autopilot": {"autopilot"},
}
SECRETS = {
    "POSTGRES_PASSWORD",
    "AIRFLOW_ADMIN_PASSWORD",
    "AIRFLOW_SECRET_KEY",
    "AIRFLOW_JWT_SECRET",
    "AIRFLOW_FERNET_KEY",
}


def _compose_command() -> list[str]:
    """What reads compose files on this machine: docker's plugin, or the program before it; nothing if neither is there."""
    if shutil.which("docker") and subprocess.run(["docker", "compose", "version"], capture_output=True).returncode == 0:
        return ["docker", "compose"]
    return ["docker-compose"] if shutil.which("docker-compose") else []


@pytest.fixture(scope="module")
def compose(root: Path) -> dict[str, Any]:
    return yaml.safe_load((root / "docker-compose.yml").read_text())


@pytest.fixture(scope="module")
def services(compose: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return compose["services"]


def test_every_part_is_there(services: dict[str, Any]) -> None:
    airflow = {f"airflow-{part}" for part in ("init", "api-server", "scheduler", "dag-processor", "triggerer")}
    always = {"postgres", "mlflow", "spark-master", "spark-worker"} | airflow
    assert {name for name, service in services.items() if "profiles" not in service} == always
    for profile, members in PROFILES.items():
        assert {name for name, service in services.items() if service.get("profiles") == [profile]} == members


@pytest.mark.skipif(not _compose_command(), reason="compose is not installed; apt-get install docker-compose")
@pytest.mark.parametrize("profiles", [(), ("flink", "kafka", "monitoring")])
def test_compose_reads_it(root: Path, tmp_path: Path, profiles: tuple[str, ...], services: dict[str, Any]) -> None:
    shutil.copy(root / "docker-compose.yml", tmp_path)
    shutil.copytree(root / "docker", tmp_path / "docker")
    subprocess.run(["bash", tmp_path / "docker" / "make-env"], check=True, capture_output=True)
    chosen = [word for profile in profiles for word in ("--profile", profile)]
    command = [*_compose_command(), *chosen, "config"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    read = yaml.safe_load(done.stdout)["services"]
    assert {name for name in services if not (set(services[name].get("profiles", [])) - set(profiles))} <= set(read)
    secrets = dict(line.split("=", 1) for line in (tmp_path / ".env").read_text().splitlines())
    assert read["postgres"]["environment"]["POSTGRES_PASSWORD"] == secrets["POSTGRES_PASSWORD"]
    assert "${" not in done.stdout


@pytest.mark.skipif(not _compose_command(), reason="compose is not installed; apt-get install docker-compose")
@pytest.mark.parametrize("missing", sorted(SECRETS))
def test_compose_refuses_a_blank_secret(root: Path, tmp_path: Path, missing: str) -> None:
    shutil.copy(root / "docker-compose.yml", tmp_path)
    shutil.copytree(root / "docker", tmp_path / "docker")
    (tmp_path / ".env").write_text("\n".join(f"{name}={'' if name == missing else 'x'}" for name in SECRETS))
    done = subprocess.run([*_compose_command(), "config"], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode != 0
    assert missing in done.stderr and "make env" in done.stderr


def test_every_service_has_limits_of_memory_cpu_processes_and_logs(services: dict[str, Any]) -> None:
    for name, service in services.items():
        assert re.fullmatch(r"\d+[gm]", service["mem_limit"]), name
        assert service["cpus"] > 0 and service["pids_limit"] > 0, name
        assert set(service["logging"]["options"]) == {"max-size", "max-file"}, name


@pytest.fixture
def healthy() -> Iterator[str]:
    """Answers as Airflow's health endpoint does."""
    health = {"triggerer": {"status": "healthy"}, "scheduler": {"status": "unhealthy"}}
    with AnsweringServer(lambda request, body: (200, health)) as server:
        yield f"{server.url}/api/v2/monitor/health"


def test_a_health_check_reports_the_component_and_costs_little(root: Path, healthy: str) -> None:
    program = root / "docker" / "answers"
    before = os.times()
    codes = [subprocess.run([program, healthy, *words]).returncode for words in ([], ["triggerer"], ["scheduler"])]
    after = os.times()
    assert codes == [0, 0, 1]
    spent = after.children_user + after.children_system - before.children_user - before.children_system
    assert spent / 3 < 0.5, "CPU seconds of one check"


def test_health_checks_start_nothing_but_small_programs(services: dict[str, Any]) -> None:
    programs = {service["healthcheck"]["test"][1] for service in services.values() if "healthcheck" in service}
    assert programs == {"/opt/sluice/docker/answers", "pg_isready", "wget", "nc"}


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
    stages = set(re.findall(r" AS (\S+)", dockerfile))
    used = re.findall(r"^FROM (\S+)|--from=(\S+)", dockerfile, re.MULTILINE)
    images += [name for name in map("".join, used) if name not in stages]
    assert len(images) == len(services) + 2
    for image in images:
        assert re.search(r":v?\d+\.\d+", image), image


def test_the_broker_is_of_the_version_that_the_testbed_starts(root: Path, services: dict[str, Any]) -> None:
    version = services["kafka"]["image"].partition(":")[2]
    assert f"<version>{version}</version>" in (root / "testbeds" / "kafka" / "maven" / "kafka.pom.xml").read_text()


def test_the_image_runs_as_a_user_of_its_own_from_the_lock(root: Path) -> None:
    dockerfile = (root / "docker" / "Dockerfile").read_text()
    stages = re.split(r"^FROM ", dockerfile, flags=re.MULTILINE)[1:]
    users = {stage.split()[2]: re.findall(r"^USER (\S+)", stage, re.MULTILINE) for stage in stages}
    # Root installs a compiler in the stage that is thrown away; the others end as the user they are made from.
    assert users == {"sluice": ["sluice"], "flink-home": ["root", "sluice"], "flink": []}
    assert stages[2].startswith("sluice AS flink")
    syncs = re.findall(r"uv sync (.*)", dockerfile)
    assert syncs and all("--frozen" in arguments for arguments in syncs)


def test_the_image_pins_the_uv_that_the_set_up_pins(root: Path) -> None:
    pinned = re.search(r"UV_VERSION=(\S+)", (root / ".ci" / "setup").read_text()).group(1)
    assert f"astral-sh/uv:{pinned} " in (root / "docker" / "Dockerfile").read_text()


def test_no_service_runs_as_root_or_may_become_it(services: dict[str, Any]) -> None:
    for name, service in services.items():
        assert service.get("user") not in (None, "root", "0"), name
        assert service["cap_drop"] == ["ALL"] and service["security_opt"] == ["no-new-privileges:true"], name
        assert not {"privileged", "cap_add", "pid", "network_mode"} & set(service), name


def test_ports_are_bound_to_loopback(services: dict[str, Any]) -> None:
    ports = [port for service in services.values() for port in service.get("ports", [])]
    assert ports and all(port.startswith("127.0.0.1:") for port in ports)
    hosts = [port.split(":")[1] for port in ports]
    assert len(hosts) == len(set(hosts))


def test_secrets_come_from_the_environment_alone(root: Path, services: dict[str, Any]) -> None:
    text = (root / "docker-compose.yml").read_text()
    assert set(re.findall(r"\$\{(\w+)", text)) == SECRETS
    for service in services.values():
        for key, value in service.get("environment", {}).items():
            if re.search(r"PASSWORD|SECRET|_KEY$|FERNET", key):
                assert re.fullmatch(r"\$\{\w+:\?.+\}", value), key


def test_the_image_has_every_folder_that_a_volume_or_a_service_writes_to(root: Path, services: dict[str, Any]) -> None:
    dockerfile = (root / "docker" / "Dockerfile").read_text().replace("\\\n", " ")
    made = set(re.search(r"install --directory --owner=sluice ([^&\n]*)", dockerfile).group(1).split())
    for service in services.values():
        if service["image"].startswith("sluice"):
            mounted = [mount.split(":")[1] for mount in service.get("volumes", [])]
            named = [v for k, v in service.get("environment", {}).items() if k.endswith("_DIR")]
            assert made.issuperset([*mounted, *named])


def test_the_image_is_given_all_that_it_copies_but_nothing_else(root: Path) -> None:
    allowed = {line.removeprefix("!") for line in (root / ".dockerignore").read_text().splitlines() if line[0] == "!"}
    assert {"docker", "dags", "plugins", "jobs", "clusters", "models", "pipelines", "spark", "testbeds"} <= allowed
    assert all((root / name).exists() for name in allowed)
    assert not {".env", ".git", "tests", ".sluice"} & allowed


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
