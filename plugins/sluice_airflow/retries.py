"""Retries of all tasks."""

from datetime import timedelta
from typing import Any, Final

from airflow.sdk import ExceptionRetryPolicy, RetryAction, RetryRule

from sluice_airflow.reporting import say_retry

RETRYING: Final[dict[str, Any]] = {
    "retries": 2,
    "retry_delay": timedelta(seconds=15),
    "on_retry_callback": say_retry,
    # An error that Sluice raises deliberately would be raised again.
    "retry_policy": ExceptionRetryPolicy(
        rules=[RetryRule(exception="models.errors.SluiceError", action=RetryAction.FAIL)]
    ),
}
