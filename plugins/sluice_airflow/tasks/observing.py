"""The task of `observe_jobs`."""

from collections.abc import Mapping, Sequence
from typing import Any

from models.wording import amount
from sluice_airflow.reporting import reported, task_progress


def report(extras: Sequence[Mapping[str, Any]]) -> list[str]:
    """Say what the windows of these events saw, or which jobs are observed where there is none; returns keys of samples."""
    with reported("windows"):
        progress = task_progress()
        if not extras:
            from pipelines.observe.continuous.observer import observed_jobs
            from pipelines.store.workspace import Workspace

            jobs = observed_jobs(Workspace())
            progress.say(
                f"windows: the triggerer observes {', '.join(jobs) or 'no job, since no file has operations.observe'}"
            )
            return []
        for one in extras:
            progress.say(f"windows: {one.get('job')}: {_seen(one)}")
        return [str(one["samples"]) for one in extras if one.get("samples")]


def _seen(one: Mapping[str, Any]) -> str:
    if one.get("observed") is None:
        return "it had ended or was deployed again, or was read only once" + (
            f"; samples: {one['samples']}" if one.get("samples") else ""
        )
    rates = [f"{amount(one[name])} {what}" for name, what in _FIGURES.items() if one.get(name) is not None]
    return f"{', '.join(rates)}; {one.get('bound_by')}; {one['observed']}"


_FIGURES = {
    "arriving_rate": "records/s arrive",
    "consumed_rate": "records/s are taken",
    "lag_records": "records wait",
    "restarts": "restarts",
}
