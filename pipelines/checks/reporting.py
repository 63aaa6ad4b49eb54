"""The result of a check: the report, the quarantined rows, the Data Docs, and the message that stops a run."""

import math
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import pandas as pd
import pyarrow as pa
from pydantic import Field

from models.schema import SCHEMA_VERSION, Format
from pipelines.checks.outcome import EXAMPLES, CheckOutcome, Violation
from pipelines.checks.specification import Specification
from pipelines.run import PipelineRun


class BrokenRule(Format):
    """A rule that the data violates."""

    table: str = Field(
        description="samples, observations, features, or coverage (the reporting tasks of each operator)."
    )
    expectation: str = Field(description="Great Expectations' name of the rule.")
    rule: str = Field(description="What must hold, in words.")
    found: str = Field(description="The actual state, if the rule is about the table as a whole.")
    rows: int = Field(ge=0, description="Rows that break it; 0 if it is about the table as a whole.")
    examples: tuple[dict[str, str | int | float | None], ...] = Field(
        max_length=EXAMPLES, description="The first of these rows; numbers without a JSON form as text."
    )


class CheckReport(Format):
    """The result of a check."""

    schema_version: Literal[1] = SCHEMA_VERSION
    table: str
    success: bool
    rows: int = Field(ge=0, description="Rows that were checked.")
    evaluated: int = Field(ge=1, description="Rules that were evaluated.")
    broken: tuple[BrokenRule, ...]
    quarantine: tuple[str, ...] = Field(description="URIs of Parquet files with the rows that break a rule.")
    docs: str = Field(description="URI of the first page of the Data Docs.")


def report_on(
    run: PipelineRun,
    specification: Specification,
    table: pa.Table,
    frames: Mapping[str, pd.DataFrame],
    outcome: CheckOutcome,
) -> CheckReport:
    """Write Data Docs and quarantined rows to the workspace; returns the report.

    Args:
        table: the checked rows, as written.
        frames: the checked tables by name: `table` with its evidence, and its coverage.
    """
    quarantine = []
    for name, frame in frames.items():
        broken = [v for v in outcome.violations if v.table == name]
        if broken:
            rows = table if name == specification.name else pa.Table.from_pandas(frame, preserve_index=False)
            quarantine.append(_quarantine(run, "-".join(dict.fromkeys([specification.name, name])), rows, broken))
    return CheckReport(
        table=specification.name,
        success=not outcome.violations,
        rows=table.num_rows,
        evaluated=outcome.evaluated,
        broken=tuple(_broken_rule(specification, frames[v.table], v) for v in outcome.violations),
        quarantine=tuple(quarantine),
        docs=_publish(run, specification.name, outcome),
    )


def explain(run_id: str, report: CheckReport) -> str:
    """The error message: broken rules with at most five rows of each, and where the details are."""
    lines = [f"the {report.table} of run {run_id!r} break {len(report.broken)} of {report.evaluated} rules"]
    for broken in report.broken[:EXAMPLES]:
        amount = _amount(broken)
        lines.append(f"  {broken.table}: {broken.rule}, but {amount} ({broken.expectation})")
        lines += ["    " + ", ".join(f"{name}={value}" for name, value in row.items()) for row in broken.examples]
    if len(report.broken) > EXAMPLES:
        lines.append(f"  ... and {len(report.broken) - EXAMPLES} more rules")
    lines.append(f"  the rows are copied to {', '.join(report.quarantine)}; the Data Docs are {report.docs}")
    lines.append("  fix the testbed, metrics or file that they come from, delete them, and run the stages again")
    return "\n".join(lines)


def _amount(broken: BrokenRule) -> str:
    if not broken.rows:
        return broken.found
    return "1 row does not" if broken.rows == 1 else f"{broken.rows:,} rows do not"


def _quarantine(run: PipelineRun, name: str, table: pa.Table, violations: Sequence[Violation]) -> str:
    """Copy the rows that break a rule, with the rules they break; all rows if a rule is about the whole table."""
    of_row: dict[int, list[str]] = {}
    for violation in violations:
        for row in violation.rows or range(table.num_rows):
            of_row.setdefault(row, []).append(violation.rule)
    rows = sorted(of_row)
    kept = table.take(rows).append_column("broken_rules", pa.array([of_row[r] for r in rows], pa.list_(pa.string())))
    key = f"quarantine/{run.job.name}/{run.run_id}/{name}.parquet"
    run.workspace.write_table(key, kept)
    return run.workspace.uri(key)


def _publish(run: PipelineRun, name: str, outcome: CheckOutcome) -> str:
    folder = f"docs/{run.job.name}/{run.run_id}/{name}"
    for key in run.workspace.list(folder):
        run.workspace.delete(key)
    for path, page in outcome.pages.items():
        run.workspace.write_bytes(f"{folder}/{path}", page)
    return run.workspace.uri(folder, "index.html")


def _broken_rule(specification: Specification, frame: pd.DataFrame, violation: Violation) -> BrokenRule:
    shown = [*specification.key, *violation.columns] if violation.table == specification.name else list(frame.columns)
    columns = [name for name in dict.fromkeys(shown) if name in frame.columns]
    rows = frame.iloc[list(violation.rows[:EXAMPLES])][columns].to_dict("records")
    return BrokenRule(
        table=violation.table,
        expectation=violation.expectation,
        rule=violation.rule,
        found=violation.found,
        rows=violation.count,
        examples=tuple({name: _plain(value) for name, value in row.items()} for row in rows),
    )


def _plain(value: Any) -> str | int | float | None:
    """A value that JSON knows; NaN and infinities as text."""
    if value is None or isinstance(value, str | int):
        return value
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else str(float(value))
    return int(value) if hasattr(value, "__index__") else str(value)
