"""A server that answers as an API server does for FlinkDeployments: tokens, rights, merge patches, versions and dry runs."""

import copy
import json
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import yaml

from answering.server import AnsweringServer

ADMIN, PLANNER, READER = "admin-token", "planner-token", "reader-token"
ROLE = Path(__file__).parents[3] / "docker" / "kubernetes" / "role.yaml"
VERSION = {
    **{"major": "1", "minor": "33", "gitVersion": "v1.33.1", "gitCommit": "0", "gitTreeState": "clean"},
    **{"buildDate": "2025-05-15T08:19:08Z", "goVersion": "go1.24.2", "compiler": "gc", "platform": "linux/amd64"},
}
Acted = Callable[[dict[str, Any]], dict[str, Any] | None]
_PREFIX = "/apis/flink.apache.org/v1beta1/namespaces/"


class FakeKubernetes(AnsweringServer):
    """Of the tokens, ADMIN may do everything, PLANNER what the Role in docker/ says, READER `get` alone."""

    def __init__(self, acted: Acted = lambda document: None) -> None:
        """
        Args:
            acted: what an operator that acts at once has made of a new spec: the new status; None: it does not act.
        """
        self._acted = acted
        self.objects: dict[str, dict[str, Any]] = {}
        self.version: tuple[int, object] = 200, VERSION
        """What it answers to the question for its version."""
        self.before: Callable[[str], None] = lambda verb: None
        """Called with the verb of each request that is let in."""
        self.verbs: list[str] = []
        """Of these requests; a dry run is a verb of its own."""
        self._version = 100
        role = next(one for one in yaml.safe_load_all(ROLE.read_text()) if one["kind"] == "Role")
        self._verbs = {PLANNER: set(role["rules"][0]["verbs"]), READER: {"get"}}
        super().__init__(self._answer)

    def kubeconfig(self, folder: Path, token: str, server: str | None = None) -> Path:
        return write_kubeconfig(folder, server or self.url, token)

    def _answer(self, request: BaseHTTPRequestHandler, body: bytes) -> tuple[int, object]:
        parts = urlsplit(request.path)
        query = parse_qs(parts.query)
        token = request.headers.get("Authorization", "").removeprefix("Bearer ")
        verb = {"GET": "get", "PATCH": "patch", "POST": "create", "DELETE": "delete"}[request.command]
        if token not in (ADMIN, *self._verbs):
            return _status(401, "Unauthorized")
        if parts.path == "/version/":
            return self.version
        if not parts.path.startswith(_PREFIX):
            return _status(404, "the server could not find the requested resource")
        namespace, _, *rest = parts.path.removeprefix(_PREFIX).split("/")
        name, sub = (rest[0] if rest else ""), (rest[1] if len(rest) > 1 else "")
        if token != ADMIN and (verb not in self._verbs[token] or sub):
            what = f'flinkdeployments.flink.apache.org "{name}" is forbidden: User "{token}" cannot {verb} resource'
            return _status(403, what)
        key = f"{namespace}/{name}"
        self.verbs.append("dry-run" if query.get("dryRun") == ["All"] else verb)
        self.before(self.verbs[-1])
        if verb == "create":
            document = json.loads(body)
            return 201, self._store(f"{namespace}/{document['metadata']['name']}", document, generation=1)
        if key not in self.objects:
            return _status(404, f'flinkdeployments.flink.apache.org "{name}" not found')
        if verb == "patch":
            return self._patch(key, json.loads(body), sub, query)
        return 200, self.objects[key]

    def _patch(self, key: str, patch: dict[str, Any], sub: str, query: dict[str, list[str]]) -> tuple[int, object]:
        now = self.objects[key]
        named = patch.get("metadata", {}).pop("resourceVersion", None)
        if named not in (None, now["metadata"]["resourceVersion"]):
            return _status(
                409, f'Operation cannot be fulfilled on flinkdeployments "{key}": the object has been modified'
            )
        allowed = {"status"} if sub else {"spec", "metadata"}
        after = merge_patched(copy.deepcopy(now), {part: content for part, content in patch.items() if part in allowed})
        generation = now["metadata"]["generation"] + (after["spec"] != now["spec"])
        if query.get("dryRun") == ["All"]:
            return 200, _with(after, generation, now["metadata"]["resourceVersion"])
        stored = self._store(key, after, generation)
        if generation > now["metadata"]["generation"] and (status := self._acted(stored)) is not None:
            stored["status"] = status
        return 200, stored

    def _store(self, key: str, document: dict[str, Any], generation: int) -> dict[str, Any]:
        self._version += 1
        document["metadata"]["namespace"] = key.partition("/")[0]
        self.objects[key] = _with(document, generation, str(self._version))
        return self.objects[key]


def write_kubeconfig(folder: Path, server: str, token: str, ca: Path | None = None) -> Path:
    """A kubeconfig with the one context `test`."""
    cluster = {"server": server} | ({} if ca is None else {"certificate-authority": str(ca)})
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "test",
        "clusters": [{"name": "c", "cluster": cluster}],
        "users": [{"name": "u", "user": {"token": token}}],
        "contexts": [{"name": "test", "context": {"cluster": "c", "user": "u"}}],
    }
    path = folder / f"{token}.kubeconfig"
    path.write_text(yaml.safe_dump(document))
    return path


def _with(document: dict[str, Any], generation: int, version: str) -> dict[str, Any]:
    document["metadata"] |= {"generation": generation, "resourceVersion": version}
    return document


def merge_patched(target: Any, patch: Any) -> Any:
    """RFC 7386."""
    if not isinstance(patch, dict):
        return patch
    merged = dict(target) if isinstance(target, dict) else {}
    for key, value in patch.items():
        if value is None:
            merged.pop(key, None)
        else:
            merged[key] = merge_patched(merged.get(key), value)
    return merged


def forbidden(user: str) -> tuple[int, object]:
    return _status(403, f'forbidden: User "{user}" cannot get path "/version/"')


def _status(code: int, message: str) -> tuple[int, object]:
    return code, {"kind": "Status", "status": "Failure", "message": message, "code": code}
