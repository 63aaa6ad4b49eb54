"""Stage `features`: from the samples of a pipeline run to the features of its operators, on Spark."""

import pyarrow as pa
from pydantic import Field

from models.errors import SluiceError
from models.schema import Format, PositiveInt
from pipelines.digests import digest_bytes
from pipelines.run import PipelineRun
from pipelines.samples import runs_of, samples_key, samples_uris

VERSION = "1"
"""Of the computation: raise it when features change meaning, so that finished runs make theirs again."""


class FeaturesRecord(Format):
    """What the features were made from lies beside this in `features.json`; the table itself in `features.parquet`."""

    key: str = Field(description="Workspace key of the table.")
    digest: str = Field(description="SHA-256 of the table's file, in hex.")
    rows: PositiveInt = Field(description="One for each measurement run and operator.")
    runs: tuple[str, ...] = Field(description="Measurement runs the samples came from.")


def features(run: PipelineRun) -> str:
    """Extract the features of every measurement run of this pipeline run; returns the URI of the Parquet table.

    Raises:
        SluiceError: there are no samples, or Spark did not start or refused them.
    """
    runs = runs_of(run.workspace, run.job.name, run.run_id)
    if not runs:
        raise SluiceError(
            f"there are no samples of run {run.run_id!r} in {run.workspace.uri('samples', f'job={run.job.name}')}; "
            f"run the stages profile and explore first"
        )
    record_key, table_key = run.key("features.json"), run.key("features.parquet")
    inputs = {name: digest_bytes(run.workspace.read_bytes(samples_key(run.job.name, name))) for name in runs}
    inputs["version"] = VERSION
    record = run.workspace.once(record_key, inputs, FeaturesRecord, lambda: _extract(run, runs, table_key))
    if not _is_intact(run, record):
        run.workspace.delete(record_key)
        record = run.workspace.once(record_key, inputs, FeaturesRecord, lambda: _extract(run, runs, table_key))
    run.progress.say(f"features: {record.rows} rows from {len(record.runs)} measurement runs")
    return run.workspace.uri(table_key)


def _is_intact(run: PipelineRun, record: FeaturesRecord) -> bool:
    """Whether the table that the record speaks of is there, and is the one that was written with it."""
    if not run.workspace.exists(record.key):
        return False
    return digest_bytes(run.workspace.read_bytes(record.key)) == record.digest


def _extract(run: PipelineRun, runs: list[str], table_key: str) -> FeaturesRecord:
    table = extract(samples_uris(run.workspace, run.job.name, runs))
    run.workspace.write_table(table_key, table)
    return FeaturesRecord(
        key=table_key,
        digest=digest_bytes(run.workspace.read_bytes(table_key)),
        rows=table.num_rows,
        runs=tuple(runs),
    )


def extract(uris: list[str]) -> pa.Table:
    """Features of the samples at these URIs, sorted by run and operator.

    Raises:
        SluiceError: Spark did not start, or refused the samples.
    """
    # Spark takes long to import; commands that need none of it should not wait.
    from pyspark.errors import PySparkException

    from spark.features import features as features_of
    from spark.samples import read_samples
    from spark.session import session

    try:
        return features_of(read_samples(session(), uris)).orderBy("run", "operator").toArrow()
    except PySparkException as error:
        raise SluiceError(f"Spark could not extract features: {str(error).splitlines()[0]}") from None
