"""What a replan would change, worked out in a process of its own: a web server neither imports planning nor waits for it.

python -m pipelines.planning.preview WORKSPACE JOB RATE     # the last line is a JSON document
"""

import subprocess
import sys
import threading
from collections.abc import Sequence
from typing import Final, TypeVar

from pydantic import BaseModel, Field, ValidationError

from models.errors import SluiceError
from models.plan.changes import Difference
from models.plan.differences import difference
from models.plan.parts import Interval
from models.resources.price import UsdPerHourInAll
from models.schema import Format, PositiveInt
from pipelines.store.workspace import Workspace

Printed = TypeVar("Printed", bound=BaseModel)
TIME_LIMIT_S: Final = 120.0
_LONGEST_FAULT: Final = 500
_busy = threading.Lock()


class ReplanPreview(Format):
    """The outcome that a replan would have now; all but the job and the rate is None where it has none."""

    job: str
    rate: float = Field(description="Records/s at the sources together.")
    why_not: str | None = Field(None, description="Why the job cannot be replanned for that rate; None if it can.")
    from_version: PositiveInt | None = Field(None, description="The version that the plan would replace.")
    changes: Difference | None = Field(None, description="None where the current plan serves the rate already.")
    predicted_mst: Interval | None = Field(None, description="Records/s.")
    price_per_hour: UsdPerHourInAll | None = Field(None, description="Of all TaskManagers, USD; None where unknown.")


class PreviewBusy(SluiceError):
    """Another preview is being worked out; one at a time is, since each takes a processor for seconds."""


def preview_apart(workspace: Workspace, job: str, rate: float) -> ReplanPreview:
    """The preview of a replan, from a process that ends with it. Raises as `answer_apart`."""
    return answer_apart("pipelines.planning.preview", (workspace.url, job, repr(rate)), ReplanPreview)


def answer_apart(module: str, arguments: Sequence[str], form: type[Printed]) -> Printed:
    """What a module prints as its last line, in a process that ends with it.

    Raises:
        PreviewBusy: another one is being worked out.
        SluiceError: the process failed, or took longer than TIME_LIMIT_S.
    """
    if not _busy.acquire(blocking=False):
        raise PreviewBusy("Another preview is being worked out; try again in some seconds.")
    try:
        command = [sys.executable, "-m", module, *arguments]
        ended = subprocess.run(command, capture_output=True, text=True, timeout=TIME_LIMIT_S, check=False)
    except subprocess.TimeoutExpired:
        raise SluiceError(f"The preview took longer than {TIME_LIMIT_S:.0f} s.") from None
    finally:
        _busy.release()
    try:
        return form.model_validate_json(ended.stdout.rpartition("\n")[2])
    except ValidationError:
        fault = ended.stderr.strip().rpartition("\n")[2]
        raise SluiceError(f"The preview failed: {fault[:_LONGEST_FAULT] or 'without an answer'}") from None


def preview(workspace: Workspace, job: str, rate: float) -> ReplanPreview:
    """The preview of a replan; nothing is stored."""
    from pipelines.planning.replan import propose

    try:
        proposal = propose(workspace, job, rate)
    except SluiceError as error:
        return ReplanPreview(job=job, rate=rate, why_not=str(error))
    resources = proposal.content.resources
    return ReplanPreview(
        job=job,
        rate=rate,
        from_version=proposal.current.version,
        changes=difference(proposal.current, proposal.content) if proposal.is_new else None,
        predicted_mst=proposal.content.predicted_mst,
        price_per_hour=None if resources is None else resources.price_per_hour,
    )


if __name__ == "__main__":
    _url, _job, _rate = sys.argv[1:]
    sys.stdout.write("\n" + preview(Workspace(_url), _job, float(_rate)).model_dump_json())
