"""The profiles `flink` and `monitoring` of docker-compose.yml as processes of this machine."""

import json
import shutil
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from flink_client.rest.client import FlinkRest
from servers.arrangement import Arrangement
from testbeds.flink.placement_hook import placement_file
from testbeds.local.machine import free_port

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(shutil.which("prometheus") is None, reason="Prometheus is not installed"),
]
FLINK = ("flink-jobmanager", "flink-taskmanager-1", "flink-taskmanager-2")
REPORTER_PORT = 9249
SEEN_S = 300.0


def _settings(arrangement: Arrangement, root: Path) -> None:
    """What the Dockerfile and the mounts of compose put into place."""
    home = arrangement.folder / "flink-home"
    assemble = [sys.executable, str(root / "docker" / "flink" / "assemble"), str(home)]
    subprocess.run(assemble, check=True, capture_output=True)
    text = (home / "conf" / "config.yaml").read_text()
    arrangement.write_settings(text, "flink-jobmanager", "/opt/flink/conf/config.yaml")
    arrangement.volume("flink").mkdir(parents=True)
    (arrangement.volume("flink") / "placement").touch()
    for name in ("prometheus.yml", "alerts.yml"):
        settings = (root / "docker" / "prometheus" / name).read_text().replace("15s", "1s")
        arrangement.write_settings(settings, "prometheus", f"/etc/prometheus/{name}")


@pytest.fixture(scope="module")
def arrangement(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Arrangement]:
    ports = {name: free_port() for name in FLINK}
    moved = {(name, REPORTER_PORT): port for name, port in ports.items()}
    extra = {name: ["-D", f"metrics.reporter.prom.port={port}"] for name, port in ports.items()}
    with Arrangement(root, tmp_path_factory.mktemp("flink-profile"), moved=moved, extra=extra) as started:
        for name in FLINK[1:]:  # all read the JobManager's settings here, so each gets its own address
            address = started.addresses[name]
            extra[name] += ["-D", f"taskmanager.host={address}", "-D", f"taskmanager.bind-host={address}"]
        _settings(started, root)
        started.start(*FLINK, "prometheus")
        yield started


def _until(look: Any, wanted: Any) -> None:
    deadline = time.monotonic() + SEEN_S
    found = None
    while time.monotonic() < deadline:
        try:
            if (found := look()) == wanted:
                return
        except OSError:
            pass
        time.sleep(0.3)
    raise AssertionError(f"wanted {wanted}, but found {found}")


def test_flink_has_the_task_managers_that_plans_name_and_the_placement_hook(arrangement: Arrangement) -> None:
    with FlinkRest(arrangement.url("flink-jobmanager", 8081)) as rest:
        _until(lambda: {one.id: one.slots for one in rest.task_managers()}, {"tm-1": 4, "tm-2": 4})
        assert placement_file(rest) == arrangement.volume("flink") / "placement"
        class_path = rest.get("/jobmanager/environment")["classpath"]
        jars = [Path(jar).name for jar in class_path]
        assert jars.index("sluice-kit.jar") < next(i for i, jar in enumerate(jars) if jar.startswith("flink-dist"))


def test_prometheus_scrapes_every_flink_process(arrangement: Arrangement) -> None:
    url = arrangement.url("prometheus", 9090)

    def up() -> list[str]:
        with urllib.request.urlopen(f"{url}/api/v1/query?query=up%7Bjob%3D%22flink%22%7D", timeout=30) as answer:
            return [series["value"][1] for series in json.load(answer)["data"]["result"]]

    _until(up, ["1"] * len(FLINK))


def test_a_flink_process_that_was_killed_fires_its_alert(arrangement: Arrangement) -> None:
    url = arrangement.url("prometheus", 9090)

    def pending() -> set[str]:
        """Those of Flink; the server of Sluice's metrics was not started here."""
        with urllib.request.urlopen(f"{url}/api/v1/alerts", timeout=30) as answer:
            names = {alert["labels"]["alertname"] for alert in json.load(answer)["data"]["alerts"]}
        return {name for name in names if name.startswith("Flink")}

    _until(pending, set())  # while it started there may have been one
    arrangement.kill("flink-taskmanager-2")
    _until(pending, {"FlinkProcessDown"})


def test_every_service_is_healthy_by_its_own_check(arrangement: Arrangement) -> None:
    for name in ("flink-jobmanager", "flink-taskmanager-1", "prometheus"):
        assert arrangement.check(name), name
