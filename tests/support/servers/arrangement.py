"""The services of docker-compose.yml as processes of this machine, in the arrangement that the file states.

Commands, environment, dependencies and health checks are taken from the file. Every service has a loopback address of its
own in place of a container's, so that all keep their ports; paths of the image become paths of the checkout and of a
temporary folder.
"""

import os
import re
import secrets
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Self

import psutil
import yaml

from servers.postgres import Postgres

MARK = "SLUICE_TEST_ARRANGEMENT"
"""Environment variable by which all processes of an arrangement are found, children of children among them."""
SERVICE = "SLUICE_TEST_SERVICE"
"""Environment variable by which those of one service are found."""
START_S = 300.0
STOP_S = 20.0
ENTRYPOINTS = {"prometheus": ["prometheus"]}
"""What images that are not ours start by themselves."""


def read_compose(root: Path) -> dict[str, Any]:
    loaded: dict[str, Any] = yaml.safe_load((root / "docker-compose.yml").read_text())
    return loaded


def image_environment(root: Path, *targets: str) -> dict[str, str]:
    """What the Dockerfile sets by ENV in these targets; references to variables are left as they are."""
    text = (root / "docker" / "Dockerfile").read_text().replace("\\\n", " ")
    found: dict[str, str] = {}
    for stage in re.split(r"^(?=FROM )", text, flags=re.MULTILINE):
        if (name := re.match(r"FROM \S+ AS (\S+)", stage)) and name[1] in targets:
            for line in re.findall(r"^ENV (.*)$", stage, re.MULTILINE):
                found |= dict(re.findall(r"(\w+)=(\S+)", line))
    return found


def make_secrets(root: Path, folder: Path) -> dict[str, str]:
    """What `make env` writes, in a folder of its own."""
    script = folder / "docker" / "make-env"
    script.parent.mkdir()
    shutil.copy(root / "docker" / "make-env", script)
    subprocess.run([script], check=True, capture_output=True)
    return dict(line.split("=", 1) for line in (folder / ".env").read_text().splitlines())


class Arrangement:
    """Starts services with what they depend on; stops all of them at the end, those started last first.

    Args:
        settings: environment on top of what the file says, for all services: sizes that suit a test.
        moved: (service, port) -> another port, for a server that cannot be restricted to the service's address.
        extra: service -> further arguments, such as that port.
    """

    def __init__(
        self,
        root: Path,
        folder: Path,
        settings: Mapping[str, str] | None = None,
        moved: Mapping[tuple[str, int], int] | None = None,
        extra: Mapping[str, list[str]] | None = None,
    ) -> None:
        self._root, self.folder = root, folder
        self._settings, self._moved, self._extra = dict(settings or {}), dict(moved or {}), extra or {}
        self._compose = read_compose(root)
        self.services: dict[str, dict[str, Any]] = self._compose["services"]
        self.secrets = make_secrets(root, folder)
        network = f"127.{1 + secrets.randbelow(254)}.{secrets.randbelow(256)}"
        self.addresses = {name: f"{network}.{n}" for n, name in enumerate(self.services, start=2)}
        self._mark = secrets.token_hex(8)
        self._running: dict[str, subprocess.Popen[bytes]] = {}
        self._postgres: Postgres | None = None

    def url(self, service: str, port: int) -> str:
        return f"http://{self.addresses[service]}:{port}"

    def log(self, service: str) -> Path:
        return self.folder / f"{service}.log"

    def start(self, *services: str) -> None:
        """Start these and all they depend on, each as soon as what it depends on is healthy."""
        waiting, healthy = self._with_needed(services), set[str]()
        deadline = time.monotonic() + START_S
        while waiting := {name for name in waiting if not self.is_running(name)}:
            assert time.monotonic() < deadline, f"not started within {START_S:g} s: {sorted(waiting)}"
            for name in sorted(waiting):
                needed = set(self.services[name].get("depends_on", {}))
                healthy |= {n for n in needed - healthy if self.is_running(n) and self._is_healthy(n)}
                if needed <= healthy:
                    self._launch(name)
            time.sleep(0.2)

    def is_running(self, service: str) -> bool:
        """Whether it was started, that is."""
        return self._postgres is not None if service == "postgres" else service in self._running

    def check(self, service: str) -> bool:
        """Whether the service's health check of the file succeeds."""
        test = []
        for word in self.services[service]["healthcheck"]["test"][1:]:
            for (of, port), other in self._moved.items():
                word = word.replace(f"127.0.0.1:{port}/", f"127.0.0.1:{other}/") if of == service else word
            test.append(self._native(word.replace("127.0.0.1", self.addresses[service]), service))
        if test[0] == "wget":
            test = [str(self._root / "docker" / "answers"), test[-1]]
        done = subprocess.run(test, env=self.environment(service), capture_output=True, timeout=300)
        return done.returncode == 0

    def environment(self, service: str) -> dict[str, str]:
        """The service's environment, with the places of this machine."""
        given = self.services[service]
        found = {} if service in ENTRYPOINTS else image_environment(self._root, "sluice")
        if service.startswith("flink"):
            found |= image_environment(self._root, "flink")
        if file := given.get("env_file"):
            lines = (self._root / file).read_text().splitlines()
            found |= dict(line.split("=", 1) for line in lines if line and not line.startswith("#"))
        found |= {name: self._with_secrets(str(value)) for name, value in given.get("environment", {}).items()}
        found = {name: self._native(value, service) for name, value in found.items()}
        own = self.addresses[service]
        path = f"{Path(sys.executable).parent}:{self.folder / 'flink-home' / 'bin'}:{os.environ['PATH']}"
        kept = {name: os.environ[name] for name in ("HOME", "LANG", "JAVA_HOME") if name in os.environ}
        return {
            **kept,
            **found,
            **self._settings,
            "PATH": path,
            "PGHOST": own,
            "SPARK_LOCAL_IP": own,
            "PYTHONUNBUFFERED": "1",
            MARK: self._mark,
            SERVICE: service,
        }

    def command(self, service: str) -> list[str]:
        words = [str(word) for word in self.services[service]["command"]]
        program = ENTRYPOINTS.get(service) or [self._placed(words.pop(0))]  # which may be called as a host is
        return [*program, *(self._native(word, service) for word in words), *self._extra.get(service, [])]

    def volume(self, name: str) -> Path:
        """The folder of a volume."""
        return self.folder / "volumes" / name

    def dump(self, database: str) -> str:
        """All that the database holds, as SQL."""
        assert self._postgres is not None
        return self._postgres.dump(database)

    def kill(self, service: str) -> None:
        """As `kill -9` of the container: the process and all that it has started, what runs in sessions of its own included."""
        process = self._running.pop(service)
        started = self._processes(service)
        os.killpg(process.pid, signal.SIGKILL)
        for one in started:
            with suppress(psutil.NoSuchProcess):
                one.kill()
        process.wait()

    def left(self) -> list[str]:
        """Commands of processes of this arrangement that still run."""
        return [" ".join(process.cmdline()) for process in self._processes()]

    def stop(self) -> None:
        for process in reversed(self._running.values()):
            process.terminate()
        deadline = time.monotonic() + STOP_S
        for process in self._running.values():
            try:
                process.wait(max(0.1, deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
        for left in self._processes():
            left.kill()
        psutil.wait_procs(self._processes(), timeout=STOP_S)
        self._running.clear()
        if self._postgres is not None:
            self._postgres.stop()
            self._postgres = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def _with_needed(self, services: Iterable[str]) -> set[str]:
        wanted: set[str] = set()
        for name in services:
            wanted |= {name} | self._with_needed(self.services[name].get("depends_on", {}))
        return wanted

    def _launch(self, service: str) -> None:
        if service == "postgres":
            values = {name: self._with_secrets(v) for name, v in self.services[service]["environment"].items()}
            scripts = [
                self._root / mount.split(":")[0] for mount in self.services[service]["volumes"] if "initdb.d" in mount
            ]
            self._postgres = Postgres(self.addresses[service], values, scripts, self.log(service))
            return
        with self.log(service).open("ab") as sink:
            self._running[service] = subprocess.Popen(
                self.command(service),
                env=self.environment(service),
                cwd=self.folder,
                stdin=subprocess.DEVNULL,
                stdout=sink,
                stderr=sink,
                start_new_session=True,
            )

    def _is_healthy(self, service: str) -> bool:
        if service == "postgres":
            return self.check(service)
        code = self._running[service].poll()
        if self.services[service].get("restart") == "no":
            assert code in (None, 0), f"{service} ended with {code}: {self._end_of_log(service)}"
            return code == 0
        assert code is None, f"{service} ended with {code}: {self._end_of_log(service)}"
        return self.check(service)

    def _end_of_log(self, service: str) -> str:
        return self.log(service).read_text(errors="replace")[-3000:]

    def _processes(self, service: str | None = None) -> list[psutil.Process]:
        """Those of a service, or all."""
        wanted = {MARK: self._mark} | ({} if service is None else {SERVICE: service})
        found = []
        for process in psutil.process_iter():
            try:
                if wanted.items() <= process.environ().items() and process.status() != psutil.STATUS_ZOMBIE:
                    found.append(process)
            except (psutil.Error, OSError):
                continue
        return found

    def _with_secrets(self, text: str) -> str:
        return re.sub(r"\$\{(\w+):\?[^}]*\}", lambda found: self.secrets[found[1]], text)

    def _native(self, text: str, service: str) -> str:
        """The text with places of this machine in place of those of a container."""
        for (of, port), other in self._moved.items():
            text = text.replace(f"{of}:{port}", f"{self.addresses[of]}:{other}")
        text = self._placed(text).replace("0.0.0.0", self.addresses[service])
        for port, publisher in self._published().items():
            text = text.replace(f"127.0.0.1:{port}", f"{self.addresses[publisher]}:{port}")
        names = "|".join(map(re.escape, sorted(self.addresses, key=len, reverse=True)))
        as_host = (
            rf"(?<=@)({names})(?=[:/])|(?<=//)({names})(?=[:/]|$)|\b({names})(?=:\d)|^({names})$|(?<=: )({names})$"
        )
        text = re.sub(as_host, lambda found: self.addresses[found[0]], text, flags=re.MULTILINE)
        return re.sub(r"127\.0\.0\.1(?=:\d)", self.addresses[service], text)

    def _placed(self, text: str) -> str:
        """The text with paths of this machine in place of those of the images and volumes."""
        for image, here in {
            "/opt/sluice/.venv": sys.prefix,
            "/opt/sluice": self._root,
            "/opt/flink": self.folder / "flink-home",
            "/var/lib/sluice": self.folder / "volumes",
            "/etc/prometheus": self.folder / "prometheus-settings",
            "=/prometheus": f"={self.folder / 'prometheus'}",
        }.items():
            text = text.replace(image, str(here))
        return text

    def _published(self) -> dict[str, str]:
        """Port on the host -> service, where the service listens on the same port."""
        ports = [
            (port.split(":"), name) for name, service in self.services.items() for port in service.get("ports", [])
        ]
        return {outer: name for (_, outer, inner), name in ports if outer == inner}

    def write_settings(self, text: str, service: str, target: str) -> None:
        """Write settings as the service sees them here, to a place of the image or of a volume."""
        path = Path(self._placed(target))
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(self._native(text, service))
