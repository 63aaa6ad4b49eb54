"""A plan's export in a branch of a git repository, with the difference from the plan that was there as message."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from models.errors import InvalidInput, SluiceError
from models.plan.content import Plan
from models.plan.differences import difference
from models.wording import amount
from pipelines.apply.export import ExportFormat, Vertices, export
from pipelines.apply.gitops.git.branch import Committed, commit_file
from pipelines.apply.gitops.manifest import is_manifest, planned_manifest
from pipelines.store.plans import PlanStore

_FORMS: Final = (ExportFormat.FLINKDEPLOYMENT, ExportFormat.FLINKDEPLOYMENT_RESOURCES)
_VERSION: Final = re.compile(r"^\s*sluice/plan: (?P<job>\S+)@(?P<version>\d+)$", re.MULTILINE)


def export_to_branch(
    store: PlanStore,
    plan: Plan,
    form: ExportFormat,
    vertices: Vertices | None,
    repository: str,
    branch: str,
    path: str,
    start: str | None = None,
) -> Committed:
    """Commit a plan to a branch, unless it is there already: into the manifest that the file is, else as the export.

    Args:
        start: branch that a new branch starts from; None: the default branch.

    Raises:
        InvalidInput: an argument is unusable, or the file is neither a manifest nor an export.
        SluiceError: git failed; nothing was changed.
    """
    if form not in _FORMS:
        raise InvalidInput(f"--git takes --format {' or '.join(_FORMS)}, but got {form}")
    if form is ExportFormat.FLINKDEPLOYMENT and vertices is None:
        raise InvalidInput(
            "a deployment needs Flink's ids of the vertices; give --vertices FILE with {operator: vertexId} (GET "
            "/jobs/:jobid lists the ids)"
        )

    def text(former: str | None) -> str:
        return planned_text(plan, form, vertices, former, path)

    def message(former: str | None) -> str:
        return commit_message(plan, _before(store, plan, former))

    return commit_file(_local(repository), branch, path, text, message, start)


def planned_text(plan: Plan, form: ExportFormat, vertices: Vertices | None, former: str | None, path: str) -> str:
    """The file with a plan in it.

    Args:
        former: its text now; None where there is no file.
        path: its name, for errors.

    Raises:
        InvalidInput: it is neither a manifest nor an export, or cannot be edited safely.
    """
    if former is not None and is_manifest(former):
        with_sizes = form is ExportFormat.FLINKDEPLOYMENT_RESOURCES
        return planned_manifest(former, plan, None if with_sizes else vertices, with_sizes, path)
    if former is not None and _VERSION.search(former) is None:
        raise InvalidInput(f"{path} is in the branch already, and is neither a FlinkDeployment nor an export of Sluice")
    return export(plan, form, vertices)


def commit_message(plan: Plan, before: Plan | None) -> str:
    """A title, and what changes from another version, where there was one."""
    title = f"Plan {plan.job}@{plan.version} for {amount(plan.target_rate)} records/s"
    body = [f"The first plan of {plan.job} here."] if before is None else list(_changes(before, plan))
    return "\n".join([title, "", *body, ""])


def _changes(before: Plan, after: Plan) -> Iterator[str]:
    change = difference(before, after)
    yield f"From {before.job}@{before.version} for {amount(before.target_rate)} records/s:"
    yield from (f"- {c.operator}: {c.before} -> {c.after} tasks" for c in change.parallelism)
    yield from (f"- {c.operator}: {c.before_mb:,.0f} -> {c.after_mb:,.0f} MiB a task" for c in change.managed_memory)
    for what, old, new in (
        ("task slots", before.task_slots, after.task_slots),
        ("MiB of a TaskManager", before.memory_mb, after.memory_mb),
    ):
        if old != new:
            yield f"- {what}: {old:,.0f} -> {new:,.0f}"
    yield f"- {change.tasks_moved} tasks start on another worker, {change.tasks_stopped} stop"


def _before(store: PlanStore, plan: Plan, former: str | None) -> Plan | None:
    """The plan that the file named before, or the version before; None where neither can be read."""
    named = None if former is None else _VERSION.search(former)
    if named is not None and named["job"] == plan.job:
        version = int(named["version"])
    else:
        version = max((v for v in store.versions(plan.job) if v < plan.version), default=0)
    try:
        return store.get(plan.job, version) if 0 < version != plan.version else None
    except SluiceError:
        return None


def _local(repository: str) -> str:
    """A local path in full, since git runs in another folder; other addresses as they are."""
    return str(Path(repository).resolve()) if Path(repository).exists() else repository
