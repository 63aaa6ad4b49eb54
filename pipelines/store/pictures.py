"""The figures of a plan's report, stored beside it as data, for pages that draw them without inline scripts."""

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal

from pydantic import Field

from models.plan.content import Plan
from models.schema import SCHEMA_VERSION, Format
from pipelines.store.digests import digest
from pipelines.store.workspace import Workspace

if TYPE_CHECKING:
    from plotly.graph_objects import Figure


class Pictures(Format):
    """Figures as plotly.js draws them."""

    schema_version: Literal[1] = SCHEMA_VERSION
    figures: dict[str, dict[str, Any]] = Field(description="Name -> `data` and `layout`, in the order of the report.")


def pictures_key(job: str, version: int) -> str:
    """Workspace key of the figures of a plan's report."""
    return f"reports/{job}/v{version:06d}.figures.json"


def keep_pictures(workspace: Workspace, plan: Plan, drawn: "Mapping[str, Figure]") -> None:
    """Store the figures of a plan's report, unless they are stored already."""

    def make() -> Pictures:
        return Pictures(figures={name: json.loads(figure.to_json()) for name, figure in drawn.items()})

    workspace.once(pictures_key(plan.job, plan.version), {"plan": digest(plan)}, Pictures, make)


def read_pictures(workspace: Workspace, job: str, version: int) -> Pictures:
    """The figures stored with a version.

    Raises:
        Missing: there are none.
        Damaged: the file is truncated, or was changed after it was made.
    """
    return workspace.read_output(pictures_key(job, version), Pictures)
