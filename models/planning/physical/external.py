"""Rate limits of what a job writes to or calls: a sink's or a service's quota, stated in the job's file.

    lambda   source rate, records/s            r_i   records into operator i per source record
    L_i      rate limit, records/s into all tasks of operator i

The job takes at most  min_i L_i / r_i  whatever tasks it has. A target above that has no plan; neither has a recovery from an
outage whose catch-up factor f needs  f lambda r_i > L_i. Headroom and risk are margins of what is measured, and not asked
of a stated limit.
"""

from collections.abc import Mapping

from pydantic import Field

from models.capacity.diagnosis.bound_by import BoundBy, RemedyEffect
from models.errors import Infeasible
from models.job import Job
from models.schema import Format, Label, Positive
from models.wording import amount

_ROUNDING = 1e-9
"""Share by which a rate may exceed a limit that it was computed from."""


class ExternalLimit(Format):
    """The rate limit that is reached first as the source rate grows."""

    operator: Label = Field(description="That writes to or calls what is limited.")
    rate_limit: Positive = Field(description="Records/s into all its tasks together.")
    records_in_per_source_record: Positive = Field(description="Records into it per record that the sources read.")

    @property
    def source_rate(self) -> float:
        """Records/s at the sources together at which it is reached."""
        return self.rate_limit / self.records_in_per_source_record


def tightest_limit(job: Job, records_in_per_source_record: Mapping[str, float]) -> ExternalLimit | None:
    """The limit that is reached first; None where no operator that gets records has one.

    Args:
        records_in_per_source_record: by operator, measured or stated.
    """
    limits = [
        ExternalLimit(operator=o.name, rate_limit=o.rate_limit, records_in_per_source_record=into)
        for o in job.operators
        if o.rate_limit is not None and (into := records_in_per_source_record[o.name]) > 0
    ]
    return min(limits, key=lambda one: one.source_rate, default=None)


def check_limit(limit: ExternalLimit | None, rate: float, catch_up: float = 1.0) -> None:
    """Check a target rate, and the rate at which an outage is made up for, against the limit.

    Raises:
        Infeasible: the limit is less; the message names it, and the highest rate that it allows.
    """
    if limit is None or catch_up * rate <= limit.source_rate * (1 + _ROUNDING):
        return
    into, most = limit.records_in_per_source_record, limit.source_rate / catch_up
    wanted = f"{amount(rate)} records/s at the sources"
    if rate <= limit.source_rate * (1 + _ROUNDING):
        wanted = f"recovering from the outage, {catch_up:.4g} x {wanted},"
    raise Infeasible(
        f"{wanted} would send {amount(into * rate * catch_up)} records/s to {limit.operator}, but its rate_limit is "
        f"{amount(limit.rate_limit)}; plan for at most {amount(most)} records/s, or raise the limit of what {limit.operator} "
        "writes to or calls, and the rate_limit in the job's file with it"
    )


def limited_bound(limit: ExternalLimit, beyond: float, inner: BoundBy) -> BoundBy:
    """What bounds a job whose tasks would sustain more than the limit.

    Args:
        beyond: MST that is predicted without the limit, records/s.
        inner: what bounds the job there.
    """
    return BoundBy(
        vertex=limit.operator,
        cause="rate limit",
        sentence=(
            f"{limit.operator} may take {amount(limit.rate_limit)} records/s, by the job's file, which is reached at "
            f"{amount(limit.source_rate)} records/s at the sources; the tasks would sustain {amount(beyond)}"
        ),
        remedy=f"a higher rate limit of what {limit.operator} writes to or calls, and no more slots",
        effect=RemedyEffect(
            change=f"no rate limit of {limit.operator}",
            rate_now=limit.source_rate,
            rate_then=beyond,
            then_bound_by=inner.vertex,
        ),
    )
