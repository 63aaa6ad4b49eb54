"""Rescaling by a savepoint and a restart, for schedulers that cannot rescale a running job."""

import logging
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from pydantic import Field

from flink_client.overrides import ignored_at_start
from flink_client.rest.client import FlinkRest
from flink_client.rest.jars import JarProgram
from flink_client.rest.transport import Refused
from models.errors import InvalidInput, SluiceError
from models.schema import SCHEMA_VERSION, Format

Missing = Callable[[], str | None]
"""What is not yet as wanted; None once it is."""
_logger = logging.getLogger(__name__)
SAVEPOINT_SETTINGS = ("execution.checkpointing.savepoint-dir", "state.savepoints.dir")
"""Flink's name of the setting since 1.20, and before."""


class RestartProgram(Format):
    """How a job was submitted, so that it can be submitted again."""

    schema_version: Literal[1] = Field(SCHEMA_VERSION, description="Version of this format.")
    jar: str = Field(min_length=1, description="Path of the jar, or the id of one that was uploaded to the cluster.")
    entry_class: str = Field(min_length=1, description="Class whose `main` builds the job.")
    arguments: tuple[str, ...] = Field((), description="Arguments of the program.")
    settings: dict[str, str] = Field(default_factory=dict, description="Flink settings of the job.")
    savepoints: str | None = Field(None, description="URI of the folder for the savepoint; the cluster's if absent.")


@dataclass(frozen=True)
class Restart:
    """A program, and the folder of its savepoint."""

    program: RestartProgram
    savepoints: str

    def start(
        self, rest: FlinkRest, tasks: Mapping[str, int], savepoint: str, job: str, until: Callable[[Missing], None]
    ) -> None:
        """Start the program from a savepoint, unless a job with this id was started before.

        Where Flink's answer is lost the program may be starting still, so the job is looked for.

        Args:
            tasks: by vertex id.
            job: the id that it gets.
            until: waits until nothing is missing any more.

        Raises:
            InvalidInput: Flink refuses it.
            TimedOut: as `until`, where the answer was lost and the job does not show.
            SluiceError: Flink does not answer.
        """

        def missing() -> str | None:
            return None if rest.get_if_there(f"/jobs/{job}") is not None else "Flink has not started the program"

        if missing() is None:
            return
        try:
            self._run(rest, tasks, savepoint, job)
        except (InvalidInput, Refused) as error:
            if missing() is not None:
                raise InvalidInput(str(error)) from error
        except SluiceError as error:
            _logger.warning("whether the program was started is looked for, since its answer was lost: %s", error)
            until(missing)

    def _run(self, rest: FlinkRest, tasks: Mapping[str, int], savepoint: str, job: str) -> None:
        program = JarProgram(self.program.entry_class, self.program.arguments, self.program.settings)
        path = Path(self.program.jar)
        jar = rest.upload(path) if path.is_file() else self.program.jar
        refused = None
        try:
            rest.run(jar, program.with_parallelism(tasks), savepoint=savepoint, job=job)
        except InvalidInput as error:
            refused = error
        if path.is_file():  # not where the answer was lost: the program may be read still
            with suppress(SluiceError):
                rest.delete_jar(jar)
        if refused is not None:
            raise refused


def prepare_restart(rest: FlinkRest, program: RestartProgram, settings: Mapping[str, str]) -> Restart:
    """Check that a restart can change the numbers of tasks, and the jar; determine the folder of the savepoint.

    Raises:
        InvalidInput: this Flink would start the job with the tasks of before, the jar does not exist, or neither the program
            nor the cluster's settings name a folder.
    """
    if (why := ignored_at_start(rest.flink_version())) is not None:
        raise InvalidInput(f"{why}; run the cluster with 'jobmanager.scheduler: adaptive', which rescales in place")
    uploaded = [one["id"] for one in rest.get("/jars")["files"]]
    if not Path(program.jar).is_file() and program.jar not in uploaded:
        raise InvalidInput(
            f"'jar' must be a file or the id of a jar on the cluster, but got {program.jar!r}; uploaded are "
            f"{', '.join(uploaded) or 'none'}"
        )
    folder = program.savepoints or next((settings[name] for name in SAVEPOINT_SETTINGS if name in settings), None)
    if folder is None:
        raise InvalidInput(
            f"a restart needs a folder for its savepoint, but the cluster has no {SAVEPOINT_SETTINGS[0]}; set 'savepoints' "
            f"in the program's file to a URI that all TaskManagers can write"
        )
    return Restart(program, folder)
