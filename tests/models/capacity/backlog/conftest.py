"""A job that reads a log, as a fluid: exact, with commits in steps."""

from dataclasses import dataclass

import pytest

from models.capacity.backlog.lag import LagPoint

POLL_S = 0.5


@dataclass
class FluidJob:
    """Takes `capacity` records/s while it is behind, and what arrives otherwise; commits every `commit_s`."""

    capacity: float
    commit_s: float = POLL_S
    most_fed: float = float("inf")
    slow_for_s: float = 0.0
    """After its start it takes a tenth."""
    time_s: float = 0.0
    arrived: float = 0.0
    taken: float = 0.0
    committed: float = 0.0

    def fed(self, rate: float, seconds: float) -> list[LagPoint]:
        """Readings while records arrive."""
        points = [self.point()]
        for _ in range(round(seconds / POLL_S)):
            speed = self.capacity * (0.1 if self.time_s < self.slow_for_s else 1.0)
            self.time_s += POLL_S
            self.arrived += min(rate, self.most_fed) * POLL_S
            self.taken = min(self.arrived, self.taken + speed * POLL_S)
            if self.time_s % self.commit_s < POLL_S / 2:
                self.committed = self.taken
            points.append(self.point())
        return points

    def point(self) -> LagPoint:
        return LagPoint(self.time_s, self.arrived, self.arrived - self.committed)


@pytest.fixture
def fluid() -> type[FluidJob]:
    return FluidJob
