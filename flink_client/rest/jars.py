"""Jars on a cluster, and the programs that they run."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from flink_client.overrides import OVERRIDES_OPTION, overrides
from flink_client.rest.answers import Vertex, VertexEdge, graph
from flink_client.rest.transport import Refused, RestTransport, typed
from models.errors import InvalidInput


@dataclass(frozen=True)
class JarProgram:
    """Entry class, arguments and settings of a job that a jar runs."""

    entry_class: str
    arguments: tuple[str, ...]
    settings: Mapping[str, str]
    """Flink settings of this job."""

    def with_parallelism(self, tasks: Mapping[str, int]) -> "JarProgram":
        """The program with the given number of tasks for each vertex, by vertex id.

        Flink heeds them unless `overrides.ignored_at_start` says otherwise, or the program sets them itself (Sluice's kit).
        """
        return replace(self, settings={**self.settings, OVERRIDES_OPTION: overrides(tasks)})

    def body(self) -> dict[str, Any]:
        return {
            "entryClass": self.entry_class,
            "programArgsList": list(self.arguments),
            "flinkConfiguration": dict(self.settings),
        }


class JarApi(RestTransport):
    """Uploads jars, plans their programs, and starts them."""

    @typed
    def upload(self, jar: Path, name: str | None = None) -> str:
        """Store a jar on the cluster.

        Args:
            name: its name there, which is the end of its id; that of the file if absent.

        Returns:
            Its id there.
        """
        with jar.open("rb") as file:
            answer = self._request("POST", "/jars/upload", files={"jarfile": (name or jar.name, file)}, repeat=False)
        return str(answer["filename"]).rsplit("/", 1)[-1]

    @typed
    def jars(self) -> tuple[str, ...]:
        """Ids of the uploaded jars."""
        return tuple(str(one["id"]) for one in self._get("/jars")["files"])

    def delete_jar(self, jar: str) -> None:
        """Remove an uploaded jar; jobs that run keep their own copy."""
        self._request("DELETE", f"/jars/{jar}")

    @typed
    def plan(self, jar: str, program: JarProgram) -> tuple[tuple[Vertex, ...], tuple[VertexEdge, ...]]:
        """The job graph that a program would run, without running it.

        Raises:
            InvalidInput: Flink refused the program; the message is Flink's.
        """
        return graph(self._submitted(f"/jars/{jar}/plan", program.body())["plan"])

    @typed
    def run(self, jar: str, program: JarProgram, *, savepoint: str | None = None, job: str | None = None) -> str:
        """Start a job, from a savepoint if one is given. Returns its id.

        Args:
            job: the id that it gets, 32 hexadecimal digits; Flink starts no second job with it.

        Raises:
            InvalidInput: Flink refused the program (for example wrong SQL); the message is Flink's.
        """
        body = program.body() | ({"savepointPath": savepoint} if savepoint else {}) | ({"jobId": job} if job else {})
        return str(self._submitted(f"/jars/{jar}/run", body)["jobid"])

    def _submitted(self, path: str, body: dict[str, Any]) -> Any:
        try:
            return self._request("POST", path, json=body, repeat=False)
        except Refused as error:
            raise InvalidInput(f"Flink refused the job: {error}") from error
