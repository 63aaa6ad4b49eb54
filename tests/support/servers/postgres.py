"""A PostgreSQL server of the system's package, started as its image starts it."""

import os
import pwd
import shutil
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

PORT = 5432
START_S = 60.0


def programs() -> Path | None:
    """The folder of the newest PostgreSQL that is installed, None where there is none."""
    found = Path("/usr/lib/postgresql").glob("*/bin/initdb")
    return max((path.parent for path in found), key=lambda path: int(path.parent.name), default=None)


class Postgres:
    """A server with a database cluster of its own, on one address; it refuses root, so root starts it as `postgres`.

    Args:
        values: the variables of the image: POSTGRES_USER, POSTGRES_PASSWORD, POSTGRES_DB.
        scripts: SQL files that are run once, in the database POSTGRES_DB.
    """

    def __init__(self, address: str, values: Mapping[str, str], scripts: Sequence[Path], log: Path) -> None:
        folder = programs()
        assert folder is not None, "PostgreSQL is not installed"
        self._programs = folder
        self._as: dict[str, Any] = {}
        self.folder = Path(tempfile.mkdtemp(prefix="sluice-postgres-"))
        if os.geteuid() == 0:
            account = pwd.getpwnam("postgres")
            os.chown(self.folder, account.pw_uid, account.pw_gid)
            self._as = {"user": account.pw_uid, "group": account.pw_gid, "extra_groups": []}
        self._values, self._address = dict(values), address
        self._make(values)
        command = [folder / "postgres", "-D", self.folder / "data", "-h", address, "-p", str(PORT)]
        command += ["-k", self.folder, "-c", "fsync=off", "-c", "max_connections=200"]
        with log.open("ab") as sink:
            self._process = subprocess.Popen(command, stdout=sink, stderr=sink, cwd=self.folder, **self._as)
        self._wait(address)
        self._fill(values, scripts)

    def _make(self, values: Mapping[str, str]) -> None:
        password = self.folder / "password"
        password.write_text(values["POSTGRES_PASSWORD"])
        password.chmod(0o644)
        command = [self._programs / "initdb", "-D", self.folder / "data", "--username", values["POSTGRES_USER"]]
        command += ["--pwfile", password, "--auth", "scram-sha-256", "--encoding", "UTF8", "--no-sync"]
        subprocess.run(command, check=True, capture_output=True, cwd=self.folder, **self._as)
        password.unlink()

    def _wait(self, address: str) -> None:
        command = [self._programs / "pg_isready", "--host", address, "--port", str(PORT), "--quiet"]
        deadline = time.monotonic() + START_S
        while subprocess.run(command, cwd=self.folder).returncode != 0:
            assert self._process.poll() is None, "PostgreSQL ended"
            assert time.monotonic() < deadline, f"PostgreSQL did not answer within {START_S:g} s"
            time.sleep(0.1)

    def dump(self, database: str) -> str:
        """All that a database holds, as SQL."""
        command = [self._programs / "pg_dump", "--host", self._address, "--port", str(PORT), "--inserts"]
        command += ["--username", self._values["POSTGRES_USER"], "--dbname", database]
        environment = os.environ | {"PGPASSWORD": self._values["POSTGRES_PASSWORD"]}
        return subprocess.run(command, check=True, capture_output=True, text=True, env=environment).stdout

    def _fill(self, values: Mapping[str, str], scripts: Sequence[Path]) -> None:
        texts = [f"CREATE DATABASE {values['POSTGRES_DB']};", *(script.read_text() for script in scripts)]
        command = [
            "psql",
            "--host",
            self.folder,
            "--username",
            values["POSTGRES_USER"],
            "--dbname",
            "postgres",
            "--quiet",
        ]
        environment = os.environ | {"PGPASSWORD": values["POSTGRES_PASSWORD"], "PGPORT": str(PORT)}
        for text in texts:
            subprocess.run([*command, "--command", text], check=True, capture_output=True, env=environment)

    def stop(self) -> None:
        command = [self._programs / "pg_ctl", "stop", "-D", self.folder / "data", "--mode", "immediate"]
        subprocess.run(command, check=False, capture_output=True, cwd=self.folder, **self._as)
        self._process.wait(30)
        shutil.rmtree(self.folder, ignore_errors=True)
