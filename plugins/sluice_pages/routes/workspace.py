"""What routes are given of the workspace."""

from typing import Annotated, Any

from fastapi import Depends

from pipelines.store.workspace import Workspace


def _workspace() -> Workspace:
    # Not the class itself: FastAPI would read its argument from the query.
    return Workspace()


WorkspaceDep = Annotated[Workspace, Depends(_workspace)]
Content = dict[str, Any]
