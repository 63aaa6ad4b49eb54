"""What rates take is asked for once in a while, and again for a new version of the plan."""

from collections.abc import Sequence

import pytest

from models.errors import SluiceError
from pipelines.calendar.sizes import KEPT_S, KeptSizes, RateSize, RateSizes, sizes_apart
from pipelines.planning.preview import PreviewBusy
from pipelines.store.workspace import Workspace
from workspaces.operated_job import JOB, OperatedJob


class Asked:
    """Answers with a slot for each 500 records/s, and keeps what it was asked."""

    def __init__(self) -> None:
        self.rates: list[Sequence[float]] = []
        self.why_not: str | None = None

    def __call__(self, workspace: Workspace, job: str, rates: Sequence[float]) -> RateSizes:
        self.rates.append(rates)
        made = [RateSize(rate=rate, slots=int(rate / 500), price_per_hour=None, why_not=None) for rate in rates]
        return RateSizes(sizes=tuple(made), why_not=self.why_not)


def test_sizes_are_kept_for_a_while_and_until_the_next_version(planned: OperatedJob) -> None:
    seconds, asked = [0.0], Asked()
    kept = KeptSizes(asked, lambda: seconds[0])
    for _ in range(2):
        found = kept.of(planned.workspace, JOB, [3000.0, 1000.0, 3000.0])
        assert {rate: size.slots for rate, size in found.items()} == {1000.0: 2, 3000.0: 6}
    assert asked.rates == [(1000.0, 3000.0)]
    seconds[0] = KEPT_S + 1
    kept.of(planned.workspace, JOB, [1000.0, 3000.0])
    planned.publish(3, rate=2000.0)
    kept.of(planned.workspace, JOB, [1000.0, 3000.0])
    assert len(asked.rates) == 3


def test_a_job_that_nothing_sizes_says_why_and_is_not_asked_for_again(planned: OperatedJob) -> None:
    asked = Asked()
    asked.why_not = "no model"
    kept = KeptSizes(asked, lambda: 0.0)
    for _ in range(2):
        with pytest.raises(SluiceError, match="no model"):
            kept.of(planned.workspace, JOB, [1000.0])
    assert len(asked.rates) == 1


def test_while_another_job_is_sized_it_is_asked_for_again(planned: OperatedJob) -> None:
    asked, busy = Asked(), [True, False]

    def ask(workspace: Workspace, job: str, rates: Sequence[float]) -> RateSizes:
        if busy.pop(0):
            raise PreviewBusy("another one")
        return asked(workspace, job, rates)

    kept = KeptSizes(ask, lambda: 0.0)
    with pytest.raises(PreviewBusy):
        kept.of(planned.workspace, JOB, [1000.0])
    assert kept.of(planned.workspace, JOB, [1000.0])[1000.0].slots == 2


@pytest.mark.slow
def test_a_process_of_its_own_says_why_a_job_without_a_model_has_no_sizes(planned: OperatedJob) -> None:
    found = sizes_apart(planned.workspace, JOB, [1000.0])
    assert found.sizes == () and found.why_not is not None and "exploration.json does not exist" in found.why_not
