"""What all runs of a job on Flink have in common: a deployed job that is cancelled when its run is closed."""

from collections.abc import Callable
from contextlib import suppress

from models.closing import Closing
from models.errors import SluiceError
from testbeds.flink.submission import Deployed, Submission


class DeployedRun(Closing):
    """A deployed job; what feeds its sources is closed with it."""

    def __init__(
        self, submission: Submission, deployed: Deployed, name: str, on_close: Callable[[], None], fed_by: Closing
    ) -> None:
        """
        Args:
            name: of the run, for the samples' column `run`.
            on_close: called once, when the job was cancelled.
            fed_by: what feeds its sources.
        """
        self._submission, self._deployed, self._name = submission, deployed, name
        self._on_close, self._fed_by = on_close, fed_by
        self._elapsed_s = 0.0
        self._closed = False

    @property
    def elapsed_s(self) -> float:
        """Time injected and served so far, seconds."""
        return self._elapsed_s

    @property
    def id(self) -> str:
        """Flink's id of the job; it changes with a rescale from a savepoint."""
        return self._deployed.id

    def close(self) -> None:
        """Cancel the job; may be called twice."""
        if self._closed:
            return
        self._closed = True
        try:
            with suppress(SluiceError):  # a broken cluster is restarted before it runs another job
                self._submission.cluster.check()
                self._submission.cluster.rest.cancel(self._deployed.id)
        finally:
            try:
                self._on_close()
            finally:
                self._fed_by.close()

    def _check_open(self) -> None:
        if self._closed:
            raise SluiceError("a closed run takes no rate and no configuration; deploy the job again")
