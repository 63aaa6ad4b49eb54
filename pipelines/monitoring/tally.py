"""What the autopilot of one job has done since the exporter began, from its records."""

from collections import Counter
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final, get_args

from models.scaling.control.limits import Limit
from pipelines.control.files import AutopilotFiles
from pipelines.control.record import AutopilotDecision, Done

OUTCOMES: Final[tuple[Done, ...]] = ("rescaled", "refused", "failed", "rolled-back", "dry-run")
"""Of decisions that wanted a rescale which the limits let pass."""
BUCKETS_S: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0)
"""Upper ends of the buckets of decision times, seconds."""


@dataclass
class PilotTally:
    """Counts that only grow. Every outcome and limit is there from the begin, with 0."""

    begin: datetime
    """Records before it are not counted, as in a process that counts itself."""
    decisions: Counter[str] = field(default_factory=lambda: Counter(dict.fromkeys(get_args(Done), 0)))
    """Rounds by what was done."""
    held: Counter[str] = field(default_factory=lambda: Counter(dict.fromkeys(get_args(Limit), 0)))
    """Rounds by the limit that held back an action."""
    rescales: Counter[str] = field(default_factory=lambda: Counter(dict.fromkeys(OUTCOMES, 0)))
    """Rescales by outcome."""
    downtime_s: float = 0.0
    """Of all rescales together."""
    decision_times: list[int] = field(default_factory=lambda: [0] * (len(BUCKETS_S) + 1))
    """Decisions with a record by the bucket of their time; the last one is above all ends."""
    decision_s: float = 0.0
    """Sum of these times."""
    _after: int = 0
    _since: datetime | None = None

    def update(self, files: AutopilotFiles) -> None:
        """Count the records that are new. Raises Damaged: one is truncated; those before it are counted."""
        for one in files.decisions(since=self._since or self.begin, after=self._after):
            self._count(one)
            self._after, self._since = one.number, one.decided_at

    def _count(self, one: AutopilotDecision) -> None:
        self.decisions[one.done] += one.rounds
        if one.held is not None:
            self.held[one.held] += one.rounds
        if one.rescale is not None and one.done in OUTCOMES:
            self.rescales[one.done] += 1
            self.downtime_s += one.rescale.downtime_s or 0.0
        bucket = next((n for n, end in enumerate(BUCKETS_S) if one.decision_s <= end), len(BUCKETS_S))
        self.decision_times[bucket] += 1
        self.decision_s += one.decision_s
