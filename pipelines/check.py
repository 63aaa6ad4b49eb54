"""Stages `check` and `check_features`: bad data stops a run here, with the rule it breaks and the rows that break it.

What a check found is kept in the run's folder, whether it passed or not. Where it did not, the rows that break a rule
are copied to `quarantine/`; samples themselves are never changed. Data Docs are left in `docs/` either way.
"""

from collections.abc import Callable
from functools import partial

import pandas as pd
import pyarrow as pa

from models.capacity.observation import Observation
from models.errors import SluiceError
from pipelines.checks import evidence
from pipelines.checks.outcome import Subject
from pipelines.checks.reporting import CheckReport, explain, report_on
from pipelines.checks.specification import FEATURES, SAMPLES, Specification
from pipelines.digests import digest, digest_bytes
from pipelines.run import PipelineRun
from pipelines.samples import read_samples, runs_of, samples_key

COVERAGE = "coverage"
VERSION = "1"
"""Of the rules: raise it when they change, so that finished runs are checked again."""


def check(run: PipelineRun) -> str:
    """Check the samples of every measurement run of this pipeline run; returns the URI of the report.

    Raises:
        SluiceError: there are no samples, or they break a rule.
    """
    job = run.job.name
    runs = runs_of(run.workspace, job, run.run_id)
    if not runs:
        raise SluiceError(
            f"there are no samples of run {run.run_id!r} in {run.workspace.uri('samples', f'job={job}')}; "
            f"run the stages profile and explore first"
        )
    tasks = _parallelism(run)
    inputs = {name: digest_bytes(run.workspace.read_bytes(samples_key(job, name))) for name in runs}
    inputs |= {"job": digest(run.job), "parallelism": digest(tasks), "version": VERSION}

    def make() -> CheckReport:
        table = _as_one([_plain(read_samples(run.workspace, job, name), SAMPLES) for name in runs], SAMPLES)
        coverage = partial(evidence.task_coverage, job=run.job, expected=tasks)
        return _check_table(run, SAMPLES, table, evidence.sample_evidence, coverage)

    return _kept(run, SAMPLES, inputs, make)


def check_features(run: PipelineRun) -> str:
    """Check the features of this pipeline run; returns the URI of the report.

    Raises:
        SluiceError: there are no features, or they break a rule.
    """
    key = run.key("features.parquet")
    inputs = {"features": digest_bytes(run.workspace.read_bytes(key)), "job": digest(run.job), "version": VERSION}

    def make() -> CheckReport:
        table = _plain(run.workspace.read_table(key), FEATURES)
        coverage = partial(evidence.operator_coverage, job=run.job)
        return _check_table(run, FEATURES, table, evidence.feature_evidence, coverage)

    return _kept(run, FEATURES, inputs, make)


def _kept(
    run: PipelineRun, specification: Specification, inputs: dict[str, str], make: Callable[[], CheckReport]
) -> str:
    key = run.key("checks", f"{specification.name}.json")
    report = run.workspace.once(key, inputs, CheckReport, make)
    if not report.success:
        raise SluiceError(explain(run.run_id, report))
    run.progress.say(f"check: {report.rows:,} rows of {report.table} keep all {report.evaluated} rules; {report.docs}")
    return run.workspace.uri(key)


def _parallelism(run: PipelineRun) -> dict[str, dict[str, int]]:
    """Measurement run -> operator -> tasks, where the exploration kept what it deployed."""
    names = [key.removeprefix(run.key() + "/") for key in run.workspace.list(run.key("observations"))]
    observations = [run.output(name, Observation) for name in names]
    return {o.run: dict(o.parallelism) for o in observations}


def _check_table(
    run: PipelineRun,
    specification: Specification,
    table: pa.Table,
    derive: Callable[[pa.Table], pd.DataFrame],
    coverage: Callable[[pa.Table], pd.DataFrame],
) -> CheckReport:
    """Check structure alone where it is wrong, since nothing can be derived then; otherwise everything, in one go."""
    # Great Expectations takes seconds to import; commands that check nothing should not wait for it.
    from pipelines.checks import rules
    from pipelines.checks.validation import validate

    if _is_sound(table, specification):
        columns = (*specification.columns, *specification.evidence)
        frames = {specification.name: derive(table), COVERAGE: coverage(table)}
        own = [*rules.structure(columns), *rules.content(columns, specification.key)]
        subjects = [
            Subject(specification.name, frames[specification.name], own),
            Subject(COVERAGE, frames[COVERAGE], rules.coverage()),
        ]
    else:
        frames = {specification.name: table.to_pandas()}
        subjects = [Subject(specification.name, frames[specification.name], rules.structure(specification.columns))]
    outcome = validate(subjects, run.run_id)
    if len(subjects) == 1 and not outcome.violations:
        raise SluiceError(
            f"the {specification.name} of run {run.run_id!r} must have the schema\n{specification.schema}\nbut have\n"
            f"{table.schema}\nmend whatever wrote them"
        )
    return report_on(run, specification, table, frames, outcome)


def _as_one(tables: list[pa.Table], specification: Specification) -> pa.Table:
    """All tables in one, or the first that has not the columns and types of the specification."""
    for table in tables:
        if not _is_sound(table, specification):
            return table
    return pa.concat_tables([table.cast(specification.schema) for table in tables])


def _is_sound(table: pa.Table, specification: Specification) -> bool:
    expected = specification.schema
    return bool(table.schema.names == expected.names and table.schema.types == expected.types)


def _plain(table: pa.Table, specification: Specification) -> pa.Table:
    """The table with every text as plain text, and columns of nothing but nulls with the type they should have: how a
    column is encoded is no fault."""
    for index, field in enumerate(table.schema):
        held = field.type.value_type if pa.types.is_dictionary(field.type) else field.type
        if pa.types.is_null(held) and field.name in specification.schema.names:
            type_ = specification.schema.field(field.name).type
        elif pa.types.is_string(held) or pa.types.is_large_string(held):
            type_ = pa.string()
        else:
            continue
        table = table.set_column(index, field.name, table[index].cast(type_))
    return table
