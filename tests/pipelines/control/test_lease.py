from collections.abc import Callable
from pathlib import Path

import pytest

from pipelines.control.keeping.lease import LEASE_S, MARGIN_S, RENEW_S, Lease, LeaseLost, LeaseSeeker, newest_number
from pipelines.store.workspace import Workspace


class Clock:
    def __init__(self) -> None:
        self.now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


Seek = Callable[[str], LeaseSeeker]


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def seek(tmp_path: Path, clock: Clock) -> Seek:
    return lambda holder: LeaseSeeker(Workspace(tmp_path), "clicks", clock, holder)


def got(seeker: LeaseSeeker) -> Lease:
    lease = seeker.attempt()
    assert lease is not None
    return lease


def test_one_of_two_gets_it_and_the_other_learns_who(seek: Seek) -> None:
    first, second = seek("first"), seek("second")
    assert got(first).number == 1
    assert second.attempt() is None and second.held_by == "first"


def test_a_released_one_passes_on_at_once_with_a_higher_number(seek: Seek) -> None:
    lease, second = got(seek("first")), seek("second")
    lease.release()
    assert got(second).number == 2
    with pytest.raises(LeaseLost, match="under lease 2 after 1"):
        lease.check()


def test_one_that_is_renewed_stays(seek: Seek, clock: Clock) -> None:
    lease, second = got(seek("first")), seek("second")
    for _ in range(20):
        clock.now_s += RENEW_S + 1.0
        lease.renew()
        assert second.attempt() is None


def test_one_that_is_not_renewed_passes_on_and_its_holder_stops_before(seek: Seek, clock: Clock) -> None:
    lease, second = got(seek("first")), seek("second")
    assert second.attempt() is None
    clock.now_s += LEASE_S - MARGIN_S + 0.1
    with pytest.raises(LeaseLost, match="was not renewed for 20 s"):
        lease.check()
    assert second.attempt() is None
    clock.now_s += MARGIN_S
    assert got(second).number == 2


def test_a_holder_that_was_halted_takes_it_again_under_the_next_number_if_it_is_still_there(
    seek: Seek, clock: Clock
) -> None:
    lease, second = got(seek("first")), seek("second")
    assert second.attempt() is None
    clock.now_s += LEASE_S + 1.0
    lease.renew()
    assert lease.number == 2
    assert second.attempt() is None and second.held_by == "first"
    clock.now_s += LEASE_S + 1.0
    assert got(second).number == 3
    with pytest.raises(LeaseLost, match="under lease 3"):
        lease.renew()


def test_who_comes_later_waits_for_its_own_while(seek: Seek, clock: Clock) -> None:
    """It cannot know how long ago the lease was renewed: clocks of two machines are not compared."""
    got(seek("first"))
    clock.now_s += 1000.0
    second = seek("second")
    assert second.attempt() is None
    clock.now_s += LEASE_S + 0.1
    assert got(second).number == 2


def test_of_many_that_try_at_once_one_gets_it(tmp_path: Path, clock: Clock) -> None:
    from concurrent.futures import ThreadPoolExecutor

    seekers = [LeaseSeeker(Workspace(tmp_path), "clicks", clock, str(n)) for n in range(16)]
    with ThreadPoolExecutor(16) as pool:
        found = [lease for lease in pool.map(LeaseSeeker.attempt, seekers) if lease is not None]
    assert len(found) == 1
    assert newest_number(Workspace(tmp_path), "clicks") == 1
