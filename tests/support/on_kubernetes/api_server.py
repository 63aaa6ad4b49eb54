"""A real Kubernetes API server for custom resources, built by Go from `apiserver/` and kept in the user's cache."""

import hashlib
import json
import os
import shutil
import signal
import socket
import subprocess
import time
import zipfile
from functools import partial
from pathlib import Path
from typing import Any

import urllib3
import yaml
from kubernetes import client, config

from models.closing import Closing
from on_kubernetes.server import ADMIN, PLANNER, READER, ROLE, write_kubeconfig
from testbeds.local.cache import cache_folder, made_once
from testbeds.local.maven import jars

SOURCE = Path(__file__).parent / "apiserver"
OPERATOR = Path(__file__).parents[2] / "flink_client" / "kubernetes" / "operator" / "operator.pom.xml"
_STARTS_WITHIN_S = 120


def find_go() -> str | None:
    return shutil.which("go") or shutil.which("/usr/local/go/bin/go")


class ApiServer(Closing):
    """Serves the operator's published definition on this machine, with the rights that `server.py` states."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._certificate = folder, folder / "apiserver.crt"
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.url = f"https://127.0.0.1:{free.getsockname()[1]}"
        rules = folder / "rules.json"
        role = next(one for one in yaml.safe_load_all(ROLE.read_text()) if one["kind"] == "Role")
        everything = [{"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}]
        reading = [{"verbs": ["get"], "apiGroups": ["flink.apache.org"], "resources": ["flinkdeployments"]}]
        rules.write_text(json.dumps({ADMIN: everything, PLANNER: role["rules"], READER: reading}))
        command = [str(_built() / "apiserver"), self.url.rpartition(":")[2], str(folder), str(rules)]
        with (folder / "log").open("w") as log:
            self._process = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT)
        try:
            self._define()
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        self._process.send_signal(signal.SIGTERM)
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def kubeconfig(self, folder: Path, token: str, server: str | None = None) -> Path:
        return write_kubeconfig(folder, server or self.url, token, self._certificate)

    def _define(self) -> None:
        """Wait for the server, and install the operator's definition of a FlinkDeployment."""
        with zipfile.ZipFile(next(jars(OPERATOR, "the API server").glob("flink-kubernetes-operator-api-*.jar"))) as jar:
            crd = yaml.load(
                jar.read("META-INF/fabric8/flinkdeployments.flink.apache.org-v1.yml"), Loader=yaml.CSafeLoader
            )
        until, defined = time.monotonic() + _STARTS_WITHIN_S, False
        while True:
            try:
                defined = defined or self._create(crd)
                objects = client.CustomObjectsApi(self._client())
                objects.list_namespaced_custom_object("flink.apache.org", "v1beta1", "default", "flinkdeployments")
                return
            except (OSError, urllib3.exceptions.HTTPError, client.ApiException) as error:
                if time.monotonic() > until or self._process.poll() is not None:
                    log = (self._folder / "log").read_text()[-3000:]
                    raise RuntimeError(f"the API server did not start: {error}\n{log}") from error
                time.sleep(0.3)

    def _create(self, crd: dict[str, Any]) -> bool:
        client.ApiextensionsV1Api(self._client()).create_custom_resource_definition(crd)
        return True

    def _client(self) -> client.ApiClient:
        if not self._certificate.is_file():
            raise OSError(f"{self._certificate} is not there yet")
        return config.new_client_from_config(str(self.kubeconfig(self._folder, ADMIN)), persist_config=False)


def _built() -> Path:
    digest = hashlib.sha256()
    for path in sorted(SOURCE.iterdir()):
        digest.update(path.name.encode() + path.read_bytes())
    return made_once(cache_folder() / f"apiserver-{digest.hexdigest()[:16]}", partial(_build, find_go()))


def _build(go: str | None, made: Path) -> None:
    assert go is not None, "building the API server takes Go"
    environment = os.environ | {"GOFLAGS": "-mod=readonly"}
    subprocess.run([go, "build", "-o", str(made / "apiserver"), "."], cwd=SOURCE, env=environment, check=True)
