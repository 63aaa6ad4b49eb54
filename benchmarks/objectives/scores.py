"""How long records waited in the log, and how soon the lag of an outage was read, from what was recorded."""

from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pydantic import Field

from models.errors import InvalidInput
from models.schema import Format, NonNegative
from pipelines.arena.replays.latency import waiting

GRID_S: Final = 1.0
USUAL_S: Final = 20.0
"""Before an outage: what waits then is usual."""


class LagScore(Format):
    """How long records waited in the log until the source read them."""

    records: int = Field(description="That arrived.")
    quantile_s: NonNegative = Field(description="Within which the objective's share of them was read.")
    most_s: NonNegative = Field(description="The longest wait.")
    grew_by: float = Field(description="Records/s by which the lag grew from the first half to the second.")


class RecoveryScore(Format):
    """An outage and the time after it."""

    outage_s: NonNegative = Field(
        description="What waited when the source read again, in seconds of the rate: the outage and what is read a second time."
    )
    down_s: NonNegative = Field(description="From the stop of the job until its source read again.")
    restart_s: NonNegative = Field(description="The part of it from the start of the job on.")
    rate: NonNegative = Field(description="At which records arrived from the stop on, records/s.")
    caught_up: NonNegative = Field(description="Records/s that were read during the catch-up.")
    waits_s: tuple[NonNegative, NonNegative] = Field(
        description="What a wait of `recording.WAIT_S` took before the outage and during the catch-up, means."
    )
    recovery_s: NonNegative | None = Field(
        description="From the end of the outage until no more waited than before it, or a second's records; null: never."
    )
    watched_s: NonNegative = Field(description="From the end of the outage until the end of the series.")


def lag_score(series: pa.Table, begin_s: float, end_s: float, share: float) -> LagScore:
    """
    Args:
        series: with `recording.SERIES_SCHEMA`.
        share: of the records, 0-1.

    Raises:
        InvalidInput: nothing arrived or nothing was read in that time.
    """
    at, arrived, read = _known(series)
    grid = np.arange(begin_s, end_s + GRID_S / 2, GRID_S)
    if not len(at) or at[0] > begin_s:
        raise InvalidInput(f"the job must have read records by second {begin_s:.0f}, but it had not; see the series")
    came, gone = (np.interp(grid, at, curve) for curve in (arrived, read))
    # What waits at the begin counts as arriving in a first interval, which is skipped.
    found = waiting(np.diff(came, prepend=gone[0]), np.concatenate([[0.0], np.diff(gone)]), GRID_S, skipped=1)
    if found is None:
        raise InvalidInput("no record arrived while the lag was observed; see the series")
    quantile_s, most_s = found.quantiles((share, 1.0))
    lag = came - gone
    half = len(lag) // 2
    grew_by = (float(np.mean(lag[half:])) - float(np.mean(lag[:half]))) / (GRID_S * len(lag) / 2)
    return LagScore(records=int(came[-1] - came[0]), quantile_s=quantile_s, most_s=most_s, grew_by=grew_by)


def recovery_score(series: pa.Table, stopped_s: float, started_s: float) -> RecoveryScore:
    """
    Args:
        series: with `recording.SERIES_SCHEMA`; from before the job was stopped.
        stopped_s, started_s: when the job was stopped, and when it was started again.

    Raises:
        InvalidInput: the job read nothing before or after the outage.
    """
    at, arrived, read = _known(series)
    before, after = at <= stopped_s, at > started_s
    if not before.any() or not after.any():
        raise InvalidInput("a job must have read records before and after the outage; see the series")
    lag = arrived - read
    first = int(np.flatnonzero(after)[0])
    up_s = float(at[first])
    rate = float((arrived[-1] - arrived[before][-1]) / (at[-1] - at[before][-1]))
    usual = max(float(lag[before & (at > stopped_s - USUAL_S)].max()), rate)
    recovered = np.flatnonzero(after & (lag <= usual))
    last = int(recovered[0]) if len(recovered) else len(at) - 1
    times, waited = (series.column(name).to_numpy() for name in ("at_s", "waited_s"))
    caught = (times > started_s) & (times <= at[last])
    return RecoveryScore(
        waits_s=(float(waited[times <= stopped_s].mean()), float(waited[caught].mean())),
        outage_s=float(lag[first]) / rate,
        down_s=up_s - stopped_s,
        restart_s=up_s - started_s,
        rate=rate,
        caught_up=float(read[last] - read[first]) / max(float(at[last] - up_s), 1e-9),
        recovery_s=float(at[last]) - up_s if len(recovered) else None,
        watched_s=float(at[-1]) - up_s,
    )


def _known(series: pa.Table) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Times and both curves where the source's offsets are known."""
    known = series.filter(pc.is_valid(series.column("read"))).sort_by("at_s")
    at, arrived, read = (known.column(n).to_numpy().astype(float) for n in ("at_s", "arrived", "read"))
    return at, arrived, read
