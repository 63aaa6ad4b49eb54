"""The one place that decides which notifiers hear a notice."""

import logging
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from sluice_airflow.notices.notice import Kind, Listener, Listeners

VARIABLE: Final = "SLUICE_NOTIFIERS"
_logger = logging.getLogger("sluice")


def notify(kind: "Kind", job: str, subject: str, text: str) -> None:
    """Notify the listeners of the file that SLUICE_NOTIFIERS names, one after the other.

    A fault of the file or of a notifier is logged and not raised: the task that notifies has work of its own.
    """
    if not (file := os.environ.get(VARIABLE)):
        return
    from models.errors import SluiceError
    from sluice_airflow.notices.notice import Notice

    notice = Notice(kind=kind, job=job, subject=subject, text=text)
    try:
        listeners = read_listeners(Path(file)).listeners
    except (SluiceError, OSError) as error:
        _logger.error("no notifier is called, though %s: %s", subject, error)
        return
    for listener in listeners:
        if listener.hears(notice):
            _notify_one(listener, notice.model_dump(mode="json"))


def read_listeners(file: Path) -> "Listeners":
    """Raises InvalidInput: the file is missing or wrong."""
    from pipelines.inputs.parsing.files import read_as
    from sluice_airflow.notices.notice import Listeners

    return read_as(file, Listeners)


def _notify_one(listener: "Listener", notice: dict[str, Any]) -> None:
    from airflow.sdk import BaseNotifier
    from airflow.sdk._shared.module_loading import import_string

    try:
        made = import_string(listener.notifier)(**listener.arguments)
        if not isinstance(made, BaseNotifier):
            raise TypeError(f"{listener.notifier} is no notifier of Airflow (airflow.sdk.BaseNotifier)")
        made({"notice": notice})  # what sending it raises is logged by Airflow
    except Exception as error:  # of any notifier: others must hear it still, and the task goes on
        _logger.error(
            "%s is not notified that %s (%s: %.200s); correct its entry in the file that %s names",
            listener.notifier,
            notice["subject"],
            type(error).__name__,
            error,
            VARIABLE,
        )
