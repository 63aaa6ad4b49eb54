"""The durable log that a job's sources read while it is served: records that arrived, and records that were read."""

from collections.abc import Mapping, Sequence

import numpy as np


class DurableLog:
    """Records of all sources together come at one rate; each source reads its share of them.

    A source takes events from its lanes (`java/sluice/source/Lanes.java`) also at a rate that is injected, which no log
    holds; an order counts all of them, this log only its own.
    """

    def __init__(self, shares: Mapping[str, float]) -> None:
        """
        Args:
            shares: of each source in the records that come.
        """
        self._shares = dict(shares)
        self._times: list[float] = []
        """When the rate changed, `time.monotonic`; ascending."""
        self._arrived: list[float] = []
        """Records that had come by then."""
        self.rate = 0.0
        self.stopped_at = 0.0
        """Records that had come when the clock was stopped."""
        self._told = (0.0, 0.0)
        """Records that had come and been read where the last window ended."""
        self._taken = dict.fromkeys(self._shares, 0.0)
        """Events that tasks of earlier deployments took from the lanes."""
        self._read = dict.fromkeys(self._shares, 0.0)
        self._origin = dict.fromkeys(self._shares, 0.0)
        """Events that a source's tasks had taken where its reading of the log begins, those read before left out."""

    def resume(self, rate: float, now: float, came_meanwhile: float, positions: Mapping[str, float]) -> None:
        """Records come from `now` on.

        Args:
            came_meanwhile: records that came while the clock stood.
            positions: events that the tasks of each source have taken since they were started; they hold.
        """
        self._times, self._arrived, self.rate = [now], [self.stopped_at + came_meanwhile], rate
        self._origin = {name: positions[name] - self._read[name] for name in self._shares}

    def change(self, rate: float, now: float) -> None:
        """Records come at another rate from `now` on."""
        self._arrived.append(float(self.arrived([now])[0]))
        self._times.append(now)
        self.rate = rate

    def stop(self, now: float, positions: Mapping[str, float]) -> None:
        """No record comes, and none is read, until the log is resumed; nothing happens if it stands.

        Args:
            positions: as for `resume`.
        """
        if self._times:
            self.stopped_at = float(self.arrived([now])[0])
            self._read = {name: positions[name] - self._origin[name] for name in self._shares}
            self._times, self._arrived, self.rate = [], [], 0.0

    def wait(self, records: float) -> None:
        """Records come while the clock stands."""
        self.stopped_at += records

    def redeployed(self, positions: Mapping[str, float]) -> None:
        """Other tasks go on where these stopped; the log stands."""
        self._taken = {name: self._taken[name] + positions[name] for name in self._shares}

    @property
    def stands(self) -> bool:
        """Whether the clock is stopped."""
        return not self._times

    def in_lanes(self, now: float) -> dict[str, float]:
        """By source: events up to which its lanes can be read at `now`, as in an order."""
        arrived = float(self.arrived([now])[0])
        return {name: share * arrived + self._taken[name] + self._origin[name] for name, share in self._shares.items()}

    def arrived(self, times: Sequence[float] | np.ndarray) -> np.ndarray:
        """Records that had come at each time, float64[times]."""
        if self.stands:
            return np.full(len(times), self.stopped_at)
        later = np.maximum(np.asarray(times) - self._times[-1], 0.0)
        return np.interp(times, self._times, self._arrived) + self.rate * later

    def since_last(self, arrived: np.ndarray, read: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Records that came and that were read in each interval; the first one has what did since the last window.

        Args:
            arrived: in all by the end of each interval, float64[intervals].
            read: likewise.
        """
        before, self._told = self._told, (float(arrived[-1]), float(read[-1]))
        came, were_read = np.diff(arrived, prepend=before[0]), np.diff(read, prepend=before[1])
        return np.maximum(came, 0.0), np.maximum(were_read, 0.0)

    def read(self, positions: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        """By source: records read, given the events that its tasks had taken; float64[times]."""
        return {name: positions[name] - self._origin[name] for name in self._shares}

    @property
    def read_before(self) -> dict[str, float]:
        """By source: records read by when the clock was stopped last."""
        return dict(self._read)

    def lag(self, arrived: np.ndarray, read: Mapping[str, np.ndarray | float]) -> np.ndarray:
        """Whole records that wait, given those that had come and those that each source had read; float64[times]."""
        waiting = [np.maximum(np.floor(share * arrived) - read[name], 0.0) for name, share in self._shares.items()]
        return np.asarray(np.sum(waiting, axis=0))
