"""The history of a source rate: from a CSV file, or from the samples of the running job."""

import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final
from zoneinfo import ZoneInfo

from models.calendar.rules import instant
from models.errors import InvalidInput
from models.job import Job
from models.scaling.rate_band import MOST_RATE
from pipelines.drift.production import SUFFIX, production_key
from pipelines.inputs.parsing.files import read_csv
from pipelines.store.workspace import Workspace

_OBSERVED: Final = re.compile(r"observed-(\d{8}T\d{6}Z)")
MOST_FILES: Final = 24 * 7 * 8
"""Newest files of samples that are read: eight weeks of hours."""


@dataclass(frozen=True)
class RateHistory:
    """Readings of the source rate."""

    times: Sequence[datetime]
    """UTC."""
    rates: Sequence[float]
    """Records/s of all sources together."""
    origin: str
    """In words."""


def history_from_csv(path: Path, zone: ZoneInfo) -> RateHistory:
    """Columns `time` (ISO 8601; of the zone if it has no offset) and `rate` (records/s), in any order of rows.

    Raises:
        InvalidInput: naming file, line, value and rule.
    """
    rows = read_csv(path)
    for column in ("time", "rate"):
        if column not in rows[0]:
            raise InvalidInput(f"{path} must have the columns time and rate, but has {', '.join(rows[0])}")
    found = [_reading(row, f"{path}, line {line}", zone) for line, row in enumerate(rows, start=2)]
    return RateHistory([at for at, _ in found], [rate for _, rate in found], f"{len(found)} readings of {path.name}")


def history_from_samples(workspace: Workspace, job: Job) -> RateHistory:
    """What the sources of the running job emitted, as `observe` stored it; times are exact to one of its readings.

    Raises:
        InvalidInput: there are no samples of its sources.
        Damaged: a file is no table.
    """
    sources = {source.name for source in job.sources}
    emitted: dict[datetime, float] = defaultdict(float)
    keys = [key for key in workspace.list(production_key(job.name)) if key.endswith(SUFFIX)]
    dated = [(match[1], key) for key in keys if (match := _OBSERVED.search(key))]
    for text, key in sorted(dated)[-MOST_FILES:]:
        began = datetime.strptime(text, "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC)
        table = workspace.read_table(key).select(["operator", "time_s", "interval_s", "records_out"])
        for row in table.to_pylist():
            if row["operator"] in sources and row["interval_s"] > 0:
                at = began + timedelta(seconds=round(row["time_s"], 3))
                emitted[at] += row["records_out"] / row["interval_s"]
    if not emitted:
        raise InvalidInput(
            f"there is no history of the rate of {job.name!r}: no samples of its sources {', '.join(sorted(sources))} are in "
            f"{workspace.uri(production_key(job.name))}; give a CSV file (history) or a base_rate, or let operations.observe "
            "store samples"
        )
    times = sorted(emitted)
    return RateHistory(times, [emitted[at] for at in times], f"{len(times)} samples of the running job")


def _reading(row: dict[str, str], where: str, zone: ZoneInfo) -> tuple[datetime, float]:
    try:
        at = instant(datetime.fromisoformat(row["time"]), zone)
    except (ValueError, OverflowError):
        raise InvalidInput(
            f"{where}: time must be ISO 8601, such as 2026-11-02T18:00, but is {row['time']!r}"
        ) from None
    try:
        rate = float(row["rate"])
    except ValueError:
        raise InvalidInput(f"{where}: rate must be a number of records/s, but is {row['rate']!r}") from None
    if not 0 <= rate <= MOST_RATE:
        raise InvalidInput(f"{where}: rate must be from 0 to {MOST_RATE:g} records/s, but is {row['rate']}")
    return at, rate
