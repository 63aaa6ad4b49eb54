"""Stages `check` and `check_features`: bad data stops a run here, with the broken rule and the rows that break it.

The report of a check is stored in the run's folder, whether the check passed or not. If it did not, the rows that break a
rule are copied to `quarantine/`; the data itself is never changed. Data Docs are written to `docs/` in either case.
"""

from collections.abc import Callable
from functools import partial
from typing import Final

import pandas as pd
import pyarrow as pa

from models.errors import SluiceError
from pipelines.checks import evidence
from pipelines.checks.outcome import CheckedTable
from pipelines.checks.reporting import CheckReport, explain, report_on
from pipelines.checks.specification import FEATURES, SAMPLES, Specification, observations_of
from pipelines.measuring.exploration_record import EXPLORATION_FILE, ExplorationRecord, kept_observations
from pipelines.run import PipelineRun
from pipelines.stages.profile import PROFILE_FILE, ProfileRecord
from pipelines.store.digests import digest, digest_bytes
from pipelines.store.samples import read_samples, runs_of, samples_flaw, samples_key

COVERAGE: Final = "coverage"
VERSION: Final = "2"
"""Version of the rules: increase it when they change, so that finished runs are checked again."""


def check(run: PipelineRun) -> str:
    """Check the samples and the observations of this pipeline run; returns the URI of the observations' report.

    Published measurements come without samples, so only their observations are checked.

    Raises:
        SluiceError: there are no samples, a file of samples is not the measured one, or a rule is broken.
    """
    if run.request.testbed != "recorded":
        _check_samples(run)
    return _check_observations(run)


def _check_samples(run: PipelineRun) -> str:
    job, samples = run.job.name, verified_samples(run)
    tasks = {o.run: dict(o.parallelism) for o in kept_observations(run)}
    inputs = samples | {"job": digest(run.job), "parallelism": digest(tasks), "version": VERSION}

    def make() -> CheckReport:
        table = _as_one([_plain(read_samples(run.workspace, job, name), SAMPLES) for name in samples], SAMPLES)
        coverage = partial(evidence.task_coverage, job=run.job, expected=tasks)
        return _check_table(run, SAMPLES, table, evidence.sample_evidence, coverage)

    return _kept(run, SAMPLES, inputs, make)


def _check_observations(run: PipelineRun) -> str:
    exploration = run.output(EXPLORATION_FILE, ExplorationRecord)
    specification = observations_of(run)
    inputs = {"exploration": digest(exploration), "job": digest(run.job), "version": VERSION}
    inputs["most_task_slots"] = str(run.request.max_task_slots)

    def make() -> CheckReport:
        rows = [{c.name: getattr(o, c.name) for c in specification.columns} for o in exploration.measured]
        table = pa.Table.from_pylist(rows, specification.schema)
        return _check_table(run, specification, table, evidence.observation_evidence)

    return _kept(run, specification, inputs, make)


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


def report_digests(run: PipelineRun) -> dict[str, str]:
    """Table -> digest of its check's report, for the tables that are checked before a model is selected."""
    tables = ("observations",) if run.request.testbed == "recorded" else ("samples", "observations")
    return {table: digest(run.output(_report_name(table), CheckReport)) for table in tables}


def verified_samples(run: PipelineRun) -> dict[str, str]:
    """Measurement run -> SHA-256 of its file of samples, for every measurement run of this pipeline run.

    Raises:
        SluiceError: there are none, or a file is not the measured one.
    """
    job = run.job.name
    runs = runs_of(run.workspace, job, run.run_id)
    if not runs:
        raise SluiceError(
            f"there are no samples of run {run.run_id!r} in {run.workspace.uri('samples', f'job={job}')}; "
            f"run the stages profile and explore first"
        )
    recorded = {o.run: o.samples_digest for o in kept_observations(run)}
    if run.workspace.exists(run.key(PROFILE_FILE)):
        profile = run.output(PROFILE_FILE, ProfileRecord)
        recorded[profile.run] = profile.samples_digest
    for name in runs:
        if name in recorded and (flaw := samples_flaw(run.workspace, job, name, recorded[name])) is not None:
            raise SluiceError(
                f"samples must be the measured ones, but {flaw}; run the stages profile and explore again: they "
                "repeat only this measurement"
            )
    return {name: digest_bytes(run.workspace.read_bytes(samples_key(job, name))) for name in runs}


def _report_name(table: str) -> str:
    return f"checks/{table}.json"


def _kept(
    run: PipelineRun, specification: Specification, inputs: dict[str, str], make: Callable[[], CheckReport]
) -> str:
    key = run.key(_report_name(specification.name))
    report = run.workspace.once(key, inputs, CheckReport, make)
    if not report.success:
        raise SluiceError(explain(run.run_id, report))
    run.progress.say(
        f"check: {report.rows:,} rows of {report.table} satisfy all {report.evaluated} rules; {report.docs}"
    )
    return run.workspace.uri(key)


def _check_table(
    run: PipelineRun,
    specification: Specification,
    table: pa.Table,
    derive: Callable[[pa.Table], pd.DataFrame],
    coverage: Callable[[pa.Table], pd.DataFrame] | None = None,
) -> CheckReport:
    """Check only the structure if it is wrong, since no evidence can be derived then; otherwise everything at once."""
    # Great Expectations takes seconds to import, which commands without checks do not need.
    from pipelines.checks import rules
    from pipelines.checks.validation import validate

    name, sound = specification.name, _is_sound(table, specification)
    if sound:
        columns = (*specification.columns, *specification.evidence)
        content = [*rules.structure(columns), *rules.content(columns, specification.key)]
        checked = [CheckedTable(name, derive(table), content)]
        if coverage is not None:
            checked.append(CheckedTable(COVERAGE, coverage(table), rules.coverage()))
    else:
        checked = [CheckedTable(name, table.to_pandas(), rules.structure(specification.columns))]
    outcome = validate(checked, run.run_id)
    if not sound and not outcome.violations:
        raise SluiceError(
            f"the {name} of run {run.run_id!r} must have the schema\n{specification.schema}\nbut have\n"
            f"{table.schema}\nFix the testbed or tool that wrote them"
        )
    return report_on(run, specification, table, {each.name: each.frame for each in checked}, outcome)


def _as_one(tables: list[pa.Table], specification: Specification) -> pa.Table:
    """All tables in one, or the first one without the columns and types of the specification."""
    for table in tables:
        if not _is_sound(table, specification):
            return table
    return pa.concat_tables([table.cast(specification.schema) for table in tables])


def _is_sound(table: pa.Table, specification: Specification) -> bool:
    expected = specification.schema
    return bool(table.schema.names == expected.names and table.schema.types == expected.types)


def _plain(table: pa.Table, specification: Specification) -> pa.Table:
    """The table with plain texts, and all-null columns with the specified type: encodings are no fault."""
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
