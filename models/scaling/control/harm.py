"""Whether a job does worse after a rescale than before."""

from dataclasses import dataclass
from typing import Final

from models.wording import amount

LEAST_READ: Final = 0.9
"""Share of the former rate below which a job reads less than before."""
LEAST_GROWTH: Final = 0.05
"""Growth of the lag from which records wait that the job does not read, as a share of what it reads."""


@dataclass(frozen=True)
class JobProgress:
    """How a job got on in an interval."""

    read_rate: float
    """Records/s that its sources read."""
    arriving_rate: float
    lag_records: float | None


def did_worse(before: JobProgress, after: JobProgress) -> str | None:
    """Why a job is worse off; None if it is not, or if that is unknown.

    It is worse off if it reads clearly less than before while more arrives than it reads: then what limits it is the job
    itself, and not what arrives. What it read while it caught up is no measure, so its former rate counts up to what arrived.
    """
    was = min(before.read_rate, before.arriving_rate)
    if after.read_rate >= LEAST_READ * was or after.lag_records is None:
        return None
    if after.arriving_rate - after.read_rate <= LEAST_GROWTH * after.read_rate:
        return None
    return (
        f"it reads {amount(after.read_rate)} records/s after {amount(before.read_rate)} before, while "
        f"{amount(after.arriving_rate)} arrive"
    )
