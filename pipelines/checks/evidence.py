"""Evidence: columns derived from a table, which turn rules about several columns or rows into rules about one column."""

from collections.abc import Iterable, Mapping, Sequence

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from models.job import Job


def sample_evidence(table: pa.Table) -> pd.DataFrame:
    """Samples with the columns of `models.metrics.SAMPLE_EVIDENCE`.

    Args:
        table: with the columns of SAMPLE_COLUMNS, in the order in which the samples were reported.
    """
    frame: pd.DataFrame = table.to_pandas()
    interval = frame["interval_s"].where(frame["interval_s"] > 0)
    busy, backpressured, idle = (frame[f"{name}_s"] for name in ("busy", "backpressured", "idle"))
    frame["busy_share"] = busy / interval
    frame["backpressured_share"] = backpressured / interval
    frame["idle_share"] = idle / interval
    frame["accounted_share"] = (busy + backpressured + idle) / interval
    frame["step_s"] = frame.groupby(["run", "operator", "task"], sort=False, dropna=False)["time_s"].diff()
    frame["not_finite"] = not_finite(table)
    return frame.copy()  # consolidates the new columns once, rather than in each rule


def observation_evidence(table: pa.Table) -> pd.DataFrame:
    """Observations with the columns of `models.metrics.OBSERVATION_EVIDENCE`."""
    frame: pd.DataFrame = table.to_pandas()
    frame["repeat_ratio"] = frame["mst"] / frame.groupby(["task_slots", "memory_mb"])["mst"].transform("median")
    frame["not_finite"] = not_finite(table)
    return frame


def feature_evidence(table: pa.Table) -> pd.DataFrame:
    """Features with the columns of `models.metrics.FEATURE_EVIDENCE`."""
    frame: pd.DataFrame = table.to_pandas()
    frame["not_finite"] = not_finite(table)
    return frame


def not_finite(table: pa.Table) -> pd.Series:
    """Number of NaN or infinite values in each row. A null is neither, although it looks like NaN in pandas."""
    total = pd.Series(0, index=range(table.num_rows), dtype="int64")
    for field in table.schema:
        if pa.types.is_floating(field.type):
            wrong = pc.invert(pc.fill_null(pc.is_finite(table[field.name]), True))
            total += wrong.to_numpy().astype("int64")
    return total


def task_coverage(samples: pa.Table, job: Job, expected: Mapping[str, Mapping[str, int]]) -> pd.DataFrame:
    """Number of reporting tasks of each operator, and the expected number.

    Args:
        expected: measurement run -> operator -> tasks. For a run that is missing here, tasks up to the highest reported
            index are expected, and at least one.

    Returns:
        Columns run, operator, expected_tasks, reported_tasks; a row for each run and operator, of the job or reported.
    """
    grouped = samples.group_by(["run", "operator"]).aggregate([("task", "count_distinct"), ("task", "max")])
    reported = {(r["run"], r["operator"]): (r["task_count_distinct"], r["task_max"]) for r in grouped.to_pylist()}

    def row(run: str, operator: str) -> tuple[str, str, int, int]:
        tasks, highest = reported.get((run, operator), (0, 0))
        known = expected.get(run)
        return run, operator, (highest or 0) + 1 if known is None else known.get(operator, 0), tasks

    return _coverage([row(run, operator) for run, operator in _pairs(reported, job)])


def operator_coverage(features: pa.Table, job: Job) -> pd.DataFrame:
    """Whether each operator of the job has its row of features in each run; columns as in `task_coverage`, counting
    rows."""
    counted = features.group_by(["run", "operator"]).aggregate([([], "count_all")]).to_pylist()
    reported = {(r["run"], r["operator"]): r["count_all"] for r in counted}
    known = {o.name for o in job.operators}
    return _coverage([(r, o, int(o in known), reported.get((r, o), 0)) for r, o in _pairs(reported, job)])


def _pairs(reported: Iterable[tuple[str, str]], job: Job) -> list[tuple[str, str]]:
    reported = list(reported)
    wanted = [(run, o.name) for run in dict.fromkeys(run for run, _ in reported) for o in job.operators]
    return list(dict.fromkeys([*wanted, *reported]))


def _coverage(rows: Sequence[tuple[str, str, int, int]]) -> pd.DataFrame:
    return pd.DataFrame(rows, columns=["run", "operator", "expected_tasks", "reported_tasks"])
