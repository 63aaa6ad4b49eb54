"""A Prometheus of this machine that scrapes a Flink of this machine."""

import json
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from flink_client.metrics.prometheus_api import Prometheus
from flink_client.rest.waiting import wait_for
from models.errors import SluiceError
from testbeds.local.machine import free_port


def reporter(port: int) -> dict[str, str]:
    """Flink's settings, by which its processes report on this port and the next ones."""
    return {
        "metrics.reporter.prom.factory.class": "org.apache.flink.metrics.prometheus.PrometheusReporterFactory",
        "metrics.reporter.prom.port": f"{port}-{port + 20}",
    }


@contextmanager
def running_prometheus(folder: Path, reporter_port: int, task_managers: int) -> Iterator[str]:
    """The address of one that scrapes every second, once it has samples of these TaskManagers."""
    if shutil.which("prometheus") is None:
        pytest.skip("there is no prometheus; install it (Debian, Ubuntu: apt-get install prometheus)")
    port = free_port()
    targets = [f"127.0.0.1:{port}" for port in range(reporter_port, reporter_port + 8)]
    scrape = {"job_name": "flink", "scrape_interval": "1s", "static_configs": [{"targets": targets}]}
    (folder / "prometheus.yml").write_text(json.dumps({"scrape_configs": [scrape]}))
    command = ["prometheus", f"--config.file={folder}/prometheus.yml", f"--storage.tsdb.path={folder}/data"]
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(
            [*command, f"--web.listen-address=127.0.0.1:{port}"], stdout=log, stderr=subprocess.STDOUT
        )
    url = f"http://127.0.0.1:{port}"

    def scraped() -> bool | None:
        assert process.poll() is None, (folder / "log").read_text()
        try:
            with Prometheus(url, timeout_s=5.0) as prometheus:
                times = prometheus.query("flink_taskmanager_Status_JVM_CPU_Time[1m]")
        except SluiceError:
            return None
        return (len(times) == task_managers and all(len(one["values"]) >= 3 for one in times)) or None

    try:
        wait_for(scraped, 240.0, "Prometheus with samples of every TaskManager")
        yield url
    finally:
        process.terminate()
        process.wait(20)
