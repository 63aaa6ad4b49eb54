"""Reading measurements: a CSV file with one measured budget per row (format "Measurements")."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from models.capacity.observation import Observation
from models.capacity.sizing import MOST_AMOUNT
from models.dataflow import MOST_TASKS
from models.errors import InvalidInput
from models.job import Job
from pipelines.inputs.parsing.files import read_csv

MOST_FAULTS_SHOWN = 5
MEMORY_COLUMNS = ("memory_mb", "tm_memory_mb")
SLOTS_COLUMNS = ("task_slots",)
MST_COLUMNS = ("mst", "mst_events_per_s")
"""Names of the columns: the format's own, else those of StreamBed's published files."""
PARALLELISM_COLUMN = "parallelism_per_operator"
PARALLELISM_SEPARATOR = "|"
SOURCES_COLUMN = "source_parallelism"


@dataclass(frozen=True)
class Columns:
    """Names of the columns to read; None: the format's own name, or the published one."""

    memory: str | None = None
    """Memory of one TaskManager, MiB."""
    slots: str | None = None
    """Task slots of all operators but the sources."""
    mst: str | None = None
    """Maximal sustainable throughput, records/s."""


def read_measurements(
    path: Path, columns: Columns | None = None, rows: int | None = None, job: Job | None = None
) -> tuple[Observation, ...]:
    """The observations of a CSV file, in its order.

    Args:
        rows: number of first rows to read; all if None.
        job: the measured job. With it the parallelism is read if the file has it, as StreamBed's files do
            (`parallelism_per_operator`, such as `3|35|1`, and `source_parallelism`); otherwise it is empty.

    Raises:
        InvalidInput: the file cannot be read, a column is missing, there are fewer rows than asked for, or a cell is no
            usable number (with line, column and value, at most five of them).
    """
    table = read_csv(path)
    if rows is not None and not 1 <= rows <= len(table):
        raise InvalidInput(f"{path} has {len(table)} rows, so 1 to {len(table)} of them can be used, but got {rows}")
    wanted = columns or Columns()
    present = list(table[0])
    memory = _column(path, present, "memory", wanted.memory, MEMORY_COLUMNS)
    slots = _column(path, present, "slots", wanted.slots, SLOTS_COLUMNS)
    mst = _column(path, present, "mst", wanted.mst, MST_COLUMNS)
    observations: list[Observation] = []
    faults: list[str] = []
    for line, row in enumerate(table[:rows], start=2):
        problems = [p for p in (_amount_fault(row, memory), _slots_fault(row, slots), _mst_fault(row, mst)) if p]
        faults.extend(f"line {line}, {problem}" for problem in problems)
        if not faults:
            observations.append(
                Observation(
                    run=f"{path.stem}-{line - 1}",
                    task_slots=int(float(row[slots])),
                    memory_mb=float(row[memory]),
                    parallelism=_parallelism(path, line, row, job) if job is not None else {},
                    mst=float(row[mst]),
                )
            )
    if faults:
        more = [f"... and {len(faults) - MOST_FAULTS_SHOWN} more"] if len(faults) > MOST_FAULTS_SHOWN else []
        raise InvalidInput(f"{path}: " + "\n  ".join([*faults[:MOST_FAULTS_SHOWN], *more]))
    return tuple(observations)


def parse_parallelism(job: Job, text: str) -> dict[str, int]:
    """Tasks of each operator but the sources, from `3|35|1`: one number for each, in the job's topological order.

    Raises:
        InvalidInput: there are more or fewer numbers than operators, or one is no whole number of at least 1.
    """
    names = [o.name for o in job.scaled_operators]
    counts = text.split(PARALLELISM_SEPARATOR)
    if len(counts) != len(names):
        raise InvalidInput(
            f"the parallelism of job {job.name!r} must hold {len(names)} numbers ({', '.join(names)}), but {text!r} "
            f"holds {len(counts)}; check that the measurements are of this job"
        )
    wrong = [count for count in counts if not (count.isascii() and count.isdigit() and int(count) >= 1)]
    if wrong:
        raise InvalidInput(f"a parallelism must be a whole number of at least 1, but {text!r} holds {wrong[0]!r}")
    return dict(zip(names, map(int, counts), strict=True))


def _column(path: Path, present: Sequence[str], quantity: str, asked: str | None, known: Sequence[str]) -> str:
    """The name of a quantity's column."""
    for name in [asked] if asked is not None else known:
        if name in present:
            return name
    missing = repr(asked) if asked is not None else " or ".join(repr(name) for name in known)
    raise InvalidInput(
        f"{path} has no column {missing}; its columns are {', '.join(present)}. "
        f"Name the right one with --{quantity}-column"
    )


def _amount_fault(row: dict[str, str], column: str) -> str | None:
    """The fault of a cell that must hold a finite number above 0."""
    value = _number(row[column])
    if value is None:
        return f"column {column!r}: must be a number, but got {row[column]!r}"
    if not (math.isfinite(value) and value > 0):
        return f"column {column!r}: must be finite and above 0, but got {row[column]!r}"
    if value > MOST_AMOUNT:
        return f"column {column!r}: must be at most {MOST_AMOUNT:g}, but got {row[column]!r}; is it the right column?"
    return None


def _mst_fault(row: dict[str, str], column: str) -> str | None:
    """What is wrong with an MST; of one that is 0, also what to measure."""
    fault = _amount_fault(row, column)
    if fault is not None and _number(row[column]) == 0:
        return (
            f"{fault}; leave the row out, and measure the budget again from a lower rate, or one with more task slots"
        )
    return fault


def _slots_fault(row: dict[str, str], column: str) -> str | None:
    """The fault of a cell that must hold a whole number of at least 1."""
    value = _number(row[column])
    if value is None:
        return f"column {column!r}: must be a number, but got {row[column]!r}"
    if not (math.isfinite(value) and value >= 1 and value == int(value)):
        return f"column {column!r}: must be a whole number of at least 1, but got {row[column]!r}"
    if value > MOST_TASKS:
        return f"column {column!r}: must be at most {MOST_TASKS:,}, but got {row[column]!r}; is it the right column?"
    return None


def _parallelism(path: Path, line: int, row: dict[str, str], job: Job) -> dict[str, int]:
    """Tasks of each operator that the row states; those of the source if the job has one source."""
    if PARALLELISM_COLUMN not in row:
        return {}
    try:
        tasks = parse_parallelism(job, row[PARALLELISM_COLUMN])
    except InvalidInput as error:
        raise InvalidInput(f"{path}, line {line}, column {PARALLELISM_COLUMN!r}: {error}") from None
    if SOURCES_COLUMN in row and len(job.sources) == 1 and _slots_fault(row, SOURCES_COLUMN) is None:
        tasks[job.sources[0].name] = int(float(row[SOURCES_COLUMN]))
    return tasks


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None
