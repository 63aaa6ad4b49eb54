"""The capacity that an outage needs, checked by adding up records."""

import pytest

from models.errors import InvalidInput
from models.objectives.objectives import RecoveryObjective
from models.objectives.recovery import catch_up_factor, recovery_s


def test_without_a_restart_it_is_one_and_the_outage_over_the_time() -> None:
    assert catch_up_factor(RecoveryObjective(outage_s=900, within_s=1200)) == 1.75


@pytest.mark.parametrize(
    ("outage_s", "within_s", "restart_s"), [(900, 1200, 0), (900, 1200, 60), (60, 10, 0), (1, 3600, 120)]
)
def test_the_lag_is_read_when_the_time_is_over(outage_s: float, within_s: float, restart_s: float) -> None:
    asked = RecoveryObjective(outage_s=outage_s, within_s=within_s, restart_s=restart_s)
    rate = 1000.0
    capacity = catch_up_factor(asked) * rate
    # All that arrives from the beginning of the outage on is read from the restart to the end.
    assert rate * (outage_s + within_s) == pytest.approx(capacity * (within_s - restart_s))
    assert recovery_s(asked, rate, capacity) == pytest.approx(within_s)


def test_a_job_that_only_keeps_up_never_recovers() -> None:
    assert recovery_s(RecoveryObjective(outage_s=1, within_s=1), rate=5, capacity=5) is None


def test_no_plan_is_made_for_a_thousand_times_the_rate() -> None:
    with pytest.raises(InvalidInput, match="'recover 24 h outage in 1 min' needs 1,441 times the capacity"):
        catch_up_factor(RecoveryObjective(outage_s=86400, within_s=60))
