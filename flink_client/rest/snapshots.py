"""Savepoints and checkpoints of a job, which Flink takes as asynchronous operations."""

from collections.abc import Mapping
from typing import Any

from flink_client.rest.answers import shortened
from flink_client.rest.transport import RestTransport, typed
from flink_client.rest.waiting import wait_for
from models.errors import SluiceError


class SnapshotFailed(SluiceError):
    """Flink did not take the savepoint or checkpoint; the job is as before."""


class SnapshotApi(RestTransport):
    """Takes savepoints and checkpoints."""

    @typed
    def savepoint(
        self, job: str, folder: str | None, *, cancel: bool, seconds: float = 120.0, trigger: str | None = None
    ) -> str:
        """Take a savepoint, and cancel the job if asked.

        Args:
            folder: a URI that all TaskManagers can write; None: where the cluster keeps savepoints.
            trigger: an id of the request, 32 hexadecimal digits, under which Flink takes one savepoint however often it is
                asked, for as long as it remembers the outcome (`rest.async.store-duration`, 5 min).

        Returns:
            Its path.

        Raises:
            SluiceError: it failed, or was not done in `seconds`.
        """
        return self.savepoint_of(self.trigger_savepoint(job, folder, cancel=cancel, trigger=trigger), seconds)

    def savepoint_of(self, path: str, seconds: float) -> str:
        """The path of a savepoint that was asked for; `path` is that of the request's outcome. Raises as `savepoint`."""
        job = path.split("/")[2]
        return str(self._wait_for_snapshot(path, seconds, f"the savepoint of job {job}", "location"))

    def trigger_savepoint(
        self,
        job: str,
        folder: str | None = None,
        *,
        cancel: bool = False,
        trigger: str | None = None,
        canonical: bool = False,
    ) -> str:
        """Start a savepoint, once. Returns the path for `outcome`.

        It is in the state backend's own format, with which the same backend restores any number of tasks. Asked for the default
        (CANONICAL), a job fails whose state is accessed asynchronously (Flink 2). For a changelog it is the default, since
        older releases have no other (FLINK-29802).

        Args:
            canonical: for a job whose state is not accessed asynchronously: in Flink's format, which holds each value once and
                uncompressed; that of ForSt stays its own.
        """
        body: dict[str, Any] = {"cancel-job": cancel} | ({} if folder is None else {"target-directory": folder})
        body |= {} if trigger is None else {"triggerId": trigger}
        config = self.get_if_there(f"/jobs/{job}/checkpoints/config") or {}
        canonical &= "forst" not in str(config.get("state_backend")).lower()
        if not config.get("state_changelog_enabled") and not canonical:
            body["formatType"] = "NATIVE"
        return self.trigger(f"/jobs/{job}/savepoints", body)

    def checkpoint(self, job: str, seconds: float) -> None:
        """Take a full checkpoint, from which the job resumes when its tasks are started again.

        Raises:
            SluiceError: it failed, or was not done in `seconds`.
        """
        path = self.trigger(f"/jobs/{job}/checkpoints", {"checkpointType": "FULL"})
        self._wait_for_snapshot(path, seconds, f"a checkpoint of job {job}", "checkpointId")

    @typed
    def trigger(self, path: str, body: Mapping[str, Any]) -> str:
        """Start an asynchronous operation, once. Returns the path for `outcome`."""
        return f"{path}/{self._request('POST', path, json=dict(body), repeat=False)['request-id']}"

    @typed
    def outcome(self, path: str) -> dict[str, Any] | None:
        """The outcome of an asynchronous operation; None until it is complete."""
        answer = self._get(path)
        return dict(answer["operation"]) if answer["status"]["id"] == "COMPLETED" else None

    def _wait_for_snapshot(self, path: str, seconds: float, what: str, result: str) -> Any:
        return snapshot_result(wait_for(lambda: self.outcome(path), seconds, what, pause_s=0.02), what, result)


def snapshot_result(outcome: Mapping[str, Any], what: str, result: str) -> Any:
    """A field of the outcome of a savepoint or checkpoint.

    Raises:
        SnapshotFailed: the message says why.
    """
    if outcome.get(result) is None:
        cause = outcome.get("failureCause") or outcome.get("failure-cause")
        trace = cause.get("stack-trace") if isinstance(cause, Mapping) else None
        raise SnapshotFailed(f"{what} failed: {shortened(trace) if isinstance(trace, str) else 'no reason was given'}")
    return outcome[result]
