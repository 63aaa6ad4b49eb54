"""The capacity that reads the lag of an outage in time.

    R   rate, records/s, which keeps arriving
    C   capacity, records/s that the job takes while it has lag
    D   outage: nothing is read
    T   time from the end of the outage in which the lag must be gone
    r   restart: how long after the outage the job still reads nothing; 0 where D includes it

After the restart R (D + r) records wait. From then on the lag falls by C - R, for T - r:

    (C - R) (T - r) >= R (D + r)        so        C >= R (T + D) / (T - r)                       (1)

which is R (1 + D / T) for r = 0. The rate is taken to stay what it is; what is read again since the last checkpoint counts
as a longer outage.
"""

from models.errors import InvalidInput
from models.objectives.objectives import RecoveryObjective

MOST_FACTOR = 1000.0
"""Largest catch-up factor that is planned for."""


def catch_up_factor(objective: RecoveryObjective) -> float:
    """C / R of (1).

    Raises:
        InvalidInput: it is above MOST_FACTOR.
    """
    factor = (objective.within_s + objective.outage_s) / (objective.within_s - objective.restart_s)
    if factor > MOST_FACTOR:
        raise InvalidInput(
            f"'{objective.text}' needs {factor:,.0f} times the capacity of the rate, but at most {MOST_FACTOR:,.0f} times is "
            "planned for; allow more time"
        )
    return factor


def recovery_s(objective: RecoveryObjective, rate: float, capacity: float) -> float | None:
    """T that a capacity takes for the outage, seconds; None where it never recovers.

    Args:
        rate, capacity: records/s.
    """
    if capacity <= rate:
        return None
    return objective.restart_s + rate * (objective.outage_s + objective.restart_s) / (capacity - rate)
