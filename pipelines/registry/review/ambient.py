"""MLflow's evaluation logs to the "current" run of the "current" server; here both are lent to it for its duration.

Everything else in Sluice names its store and its run. MLflow keeps the current server in the environment as well, so
until it is set back, other threads wait before they look there.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager

from pipelines.registry.tracking import ENVIRONMENT, TRACKING_VARIABLE, Tracking, configure_mlflow


@contextmanager
def current_run(tracking: Tracking, run_id: str) -> Iterator[None]:
    """Make an MLflow run the current one; it is finished at the end, or marked as failed where an error passes."""
    configure_mlflow()
    import mlflow

    with ENVIRONMENT:
        before = os.environ.get(TRACKING_VARIABLE)
        mlflow.set_tracking_uri(tracking.uri)
        try:
            with mlflow.start_run(run_id=run_id, nested=True):
                yield
        finally:
            mlflow.set_tracking_uri(None)  # type: ignore[arg-type]
            if before is not None:
                os.environ[TRACKING_VARIABLE] = before
