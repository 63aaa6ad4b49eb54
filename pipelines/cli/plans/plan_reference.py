"""How a plan is named on the command line."""

import re
from typing import Annotated

import typer

from models.errors import InvalidInput
from models.plan.content import Plan
from pipelines.store.plans import PlanStore

_REFERENCE = re.compile(r"(?P<job>[A-Za-z0-9][A-Za-z0-9._-]*)(@v?(?P<version>[0-9]{1,9}))?")
Reference = Annotated[str, typer.Argument(metavar="JOB[@V]", help="A job, or one version of its plan: nexmark-q5@3.")]


def parse_reference(reference: str) -> tuple[str, int | None]:
    """Job and version; None for the newest version.

    Raises:
        InvalidInput: it is neither JOB nor JOB@VERSION.
    """
    match = _REFERENCE.fullmatch(reference)
    if match is None:
        raise InvalidInput(f"a plan is named JOB or JOB@VERSION, for example nexmark-q5@3, but got {reference!r}")
    return match["job"], None if match["version"] is None else int(match["version"])


def find_plan(store: PlanStore, reference: str) -> Plan:
    """The plan with this name; raises as `PlanStore.current` and `PlanStore.get` do."""
    job, version = parse_reference(reference)
    return store.current(job) if version is None else store.get(job, version)
