"""The operator of a stage that measures for hours."""

import os
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from airflow.sdk import BaseOperator
from airflow.sdk.exceptions import AirflowTaskTimeout

from sluice_airflow.measuring.trigger import StageTrigger
from sluice_airflow.reporting import on_terminal, task_progress

if TYPE_CHECKING:
    from pipelines.detached.attempts import Attempt, Attempts, Outcome

MEASURE_IN: Final = "SLUICE_MEASURE_IN"
"""Environment variable: where stages that measure run."""


class StageEnded(Exception):
    """The process of a stage has failed or died; Airflow tries the task again, which resumes from what was measured."""


class MeasuringStage(BaseOperator):
    """Runs a stage, by the name of the task, in a process that outlives the task, and waits for it in the triggerer.

    A task that is tried again or started again follows the process if it still runs; no second one measures beside it.
    In the embedded Airflow, and with SLUICE_MEASURE_IN=task, the task runs the stage itself. Returns the URI of the stage's
    output.

    Args:
        request_uri: URI of the pipeline run's request.
        previous_uri: result of the task before.
        limit: time after which the process is stopped.
    """

    template_fields = ("request_uri", "previous_uri")
    _attempt: "Attempt | None" = None
    """What this process has started or joined."""

    def __init__(self, *, request_uri: Any, previous_uri: Any, limit: timedelta, **options: Any) -> None:
        super().__init__(execution_timeout=limit, **options)
        self.request_uri, self.previous_uri, self.limit = request_uri, previous_uri, limit

    def execute(self, context: Any) -> str:
        if on_terminal() or not _detached(self.request_uri):
            from sluice_airflow.tasks.planning import run_stage

            return run_stage(self.task_id, self.request_uri)
        from pipelines.detached.starting import joined

        begun = False

        def start(attempt: "Attempt") -> None:
            nonlocal begun
            begun = True
            self._start(attempt.number)

        self._attempt = joined(self._attempts(), self.limit.total_seconds(), start)
        if not begun:
            task_progress().say(f"{self.task_id}: a process measures already, attempt {self._attempt.number}")
        trigger = StageTrigger(self.request_uri, self.task_id, self._attempt.number)
        self.defer(trigger=trigger, method_name="execute_complete")

    def execute_complete(self, context: Any, event: Any) -> str:
        """Called when an attempt has ended."""
        newest = self._attempts().newest()
        outcome = None if newest is None else newest.outcome
        if outcome is None or outcome.kind == "stopped":
            # It was stopped for an earlier start of this task, or another attempt has begun: the task itself goes on.
            return self.execute(context)
        return self._result(outcome)

    def on_kill(self) -> None:
        """Stop the process, for a task that is killed before it waits in the triggerer."""
        if self._attempt is not None:
            self._attempt.stop()

    def _result(self, outcome: "Outcome") -> str:
        """
        Raises:
            SluiceError: the stage did, and would again.
            AirflowTaskTimeout: its time was up.
            StageEnded: it failed otherwise.
        """
        from models.errors import SluiceError

        match outcome.kind:
            case "done":
                return outcome.text
            case "refused":
                raise SluiceError(outcome.text)
            case "timed-out":
                raise AirflowTaskTimeout(f"{self.task_id}: {outcome.text}; the next try resumes from what it measured")
            case _:
                raise StageEnded(f"{self.task_id}: {outcome.text}")

    def _attempts(self) -> "Attempts":
        from pipelines.detached.attempts import Attempts

        return Attempts(self.request_uri, self.task_id)

    def _start(self, number: int) -> None:
        from pipelines.detached.starting import start_process
        from sluice_airflow.measuring.connections import connection_variables

        log = _log_file(self.request_uri, self.task_id, number)
        process = start_process(self.request_uri, self.task_id, number, log, connection_variables(self.request_uri))
        task_progress().say(f"{self.task_id}: process {process.pid} measures, attempt {number}; its output: {log}")


def _detached(request_uri: str) -> bool:
    """Whether the stage gets a process of its own: not where there is nothing to measure.

    Raises:
        InvalidInput: SLUICE_MEASURE_IN is neither `process` nor `task`.
    """
    from models.errors import InvalidInput
    from pipelines.run import PipelineRun

    place = os.environ.get(MEASURE_IN, "process")
    if place not in ("process", "task"):
        raise InvalidInput(f"{MEASURE_IN} must be 'process' or 'task', but is {place!r:.40}; correct or remove it")
    return place == "process" and PipelineRun.at(request_uri).request.testbed != "recorded"


def _log_file(request_uri: str, stage: str, number: int) -> Path:
    """In Airflow's folder of logs on this machine."""
    from airflow.sdk.configuration import conf

    job, run, _ = request_uri.rpartition("/runs/")[2].split("/")
    folder = Path(conf.get_mandatory_value("logging", "base_log_folder")) / "sluice-measuring"
    return folder / f"{job}-{run}-{stage}-{number}.log"
