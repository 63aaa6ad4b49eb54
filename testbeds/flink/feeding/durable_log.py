"""The durable log that a job's sources read during `serve`: records that arrived, and records that were read."""

from collections.abc import Mapping, Sequence

import numpy as np


class DurableLog:
    """Records arrive for all sources together at one rate; each source reads its share of them.

    Sources also take events from their lanes (`java/sluice/source/Lanes.java`) while a rate is injected, without a log;
    orders count all of these events, this log only its own.
    """

    def __init__(self, shares: Mapping[str, float]) -> None:
        """
        Args:
            shares: each source's share of the arriving records.
        """
        self._shares = dict(shares)
        self._times: list[float] = []
        """When the rate changed, `time.monotonic`; ascending."""
        self._arrived: list[float] = []
        """Records that had arrived by then."""
        self.rate = 0.0
        self.stopped_at = 0.0
        """Records that had arrived when the clock was stopped."""
        self._told = (0.0, 0.0)
        """Records that had arrived and been read at the end of the last window."""
        self._taken = dict.fromkeys(self._shares, 0.0)
        """Events that tasks of earlier deployments took from the lanes."""
        self._read = dict.fromkeys(self._shares, 0.0)
        self._origin = dict.fromkeys(self._shares, 0.0)
        """Events that a source's tasks had taken when it began to read the log, less the records read from the log before."""

    @property
    def taken_before(self) -> Mapping[str, float]:
        """Events that tasks of earlier deployments took from the lanes, by source."""
        return self._taken

    def resume(self, rate: float, now: float, came_meanwhile: float, positions: Mapping[str, float]) -> None:
        """Start the clock: records arrive from `now` on.

        Args:
            came_meanwhile: records that arrived while the clock was stopped.
            positions: events that the tasks of each source have taken since their start; the sources are idle.
        """
        self._times, self._arrived, self.rate = [now], [self.stopped_at + came_meanwhile], rate
        self._origin = {name: positions[name] - self._read[name] for name in self._shares}

    def change(self, rate: float, now: float) -> None:
        """Records arrive at another rate from `now` on."""
        self._arrived.append(float(self.arrived([now])[0]))
        self._times.append(now)
        self.rate = rate

    def stop(self, now: float, positions: Mapping[str, float]) -> None:
        """Stop the clock: no record arrives or is read until `resume`; no effect if it is stopped already.

        Args:
            positions: as for `resume`.
        """
        if self._times:
            self.stopped_at = float(self.arrived([now])[0])
            self._read = {name: positions[name] - self._origin[name] for name in self._shares}
            self._times, self._arrived, self.rate = [], [], 0.0

    def wait(self, records: float) -> None:
        """Add records that arrive while the clock is stopped."""
        self.stopped_at += records

    def redeployed(self, positions: Mapping[str, float]) -> None:
        """New tasks continue where the old ones stopped; the clock is stopped."""
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
        """Records that had arrived at each time, float64[times]."""
        if self.stands:
            return np.full(len(times), self.stopped_at)
        later = np.maximum(np.asarray(times) - self._times[-1], 0.0)
        return np.interp(times, self._times, self._arrived) + self.rate * later

    def since_last(self, arrived: np.ndarray, read: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Records that arrived and that were read in each interval; the first one includes those since the last window.

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
        """By source: records read when the clock was last stopped."""
        return dict(self._read)

    def lag(self, arrived: np.ndarray, read: Mapping[str, np.ndarray | float]) -> np.ndarray:
        """Waiting records, rounded, given those that had arrived and those that each source had read; float64[times]."""
        waiting = [np.maximum(np.floor(share * arrived) - read[name], 0.0) for name, share in self._shares.items()]
        return np.asarray(np.sum(waiting, axis=0))
