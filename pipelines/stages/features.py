"""Stage `features`: from samples to the features of operators, and from recorded streams to key distributions, on Spark."""

import threading
import traceback

import pyarrow as pa
from pydantic import Field

from models.errors import SluiceError
from models.schema import Format, PositiveInt
from pipelines.keys.inputs import KEYS_FILE, KeyedInputs, digests_of, keyed_inputs, keyed_operators, recorded_streams
from pipelines.run import PipelineRun
from pipelines.stages.check import verified_samples
from pipelines.store.digests import digest_bytes
from pipelines.store.samples import samples_uris

VERSION = "1"
"""Version of the computation: increase it when features change meaning, so that finished runs make theirs again."""
KEYS_VERSION = "1"
"""Version of the extraction of keys, as VERSION."""


class FeaturesRecord(Format):
    """The content of `features.json`, besides the digests of its inputs; the table itself is `features.parquet`."""

    key: str = Field(description="Workspace key of the table.")
    digest: str = Field(description="SHA-256 of the table's file, in hex.")
    rows: PositiveInt = Field(description="Number of rows: one for each measurement run and operator.")
    runs: tuple[str, ...] = Field(description="Measurement runs the samples came from.")


def features(run: PipelineRun) -> str:
    """Extract the features of every measurement run of this pipeline run; returns the URI of the Parquet table.

    Raises:
        SluiceError: there are no samples, a file of samples is not the measured one, or Spark failed.
    """
    samples = verified_samples(run)
    inputs = {**samples, "version": VERSION}
    key = run.key("features.json")
    record = run.workspace.once(
        key, inputs, FeaturesRecord, lambda: _extract(run, list(samples)), lambda kept: _table_flaw(run, kept)
    )
    run.progress.say(f"features: {record.rows} rows from {len(record.runs)} measurement runs")
    _keys(run, samples)
    return run.workspace.uri(record.key)


def _keys(run: PipelineRun, samples: dict[str, str]) -> None:
    """Extract what is known of the keys of hash-partitioned inputs, to `keys.json`."""
    keyed = keyed_operators(run.job)
    if not keyed:
        return
    recorded = recorded_streams(run.job_path, run.job)
    inputs = {**samples, **digests_of(recorded), "version": KEYS_VERSION}
    uris = samples_uris(run.workspace, run.job.name, list(samples))
    run.workspace.once(run.key(KEYS_FILE), inputs, KeyedInputs, lambda: keyed_inputs(run.job, recorded, uris))
    run.progress.say(f"keys: of {len(keyed)} operators, {len(recorded)} from recorded streams")


def _table_flaw(run: PipelineRun, record: FeaturesRecord) -> str | None:
    """The fault of a record's table; None if it is the one written with the record."""
    uri = run.workspace.uri(record.key)
    if not run.workspace.exists(record.key):
        return f"{uri} does not exist"
    intact = digest_bytes(run.workspace.read_bytes(record.key)) == record.digest
    return None if intact else f"{uri} is not the table that was written"


def _extract(run: PipelineRun, runs: list[str]) -> FeaturesRecord:
    table_key = run.key("features.parquet")
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
        OSError: a file could not be read, which may pass.
    """
    # Spark takes seconds to import, which other stages do not need.
    from py4j.protocol import Py4JJavaError
    from pyspark.errors import PySparkException

    from spark.features import features as features_of
    from spark.samples import fault_of_file, read_samples
    from spark.session import session

    try:
        return features_of(read_samples(session(), uris)).orderBy("run", "operator").toArrow()
    except (PySparkException, Py4JJavaError) as error:
        if isinstance(error.__context__, KeyboardInterrupt):  # Spark asks for the end of the job on its way out
            raise KeyboardInterrupt from None
        if isinstance(error, Py4JJavaError) and (fault := fault_of_file(error)) is not None:
            raise fault from None
        said = " ".join(str(error).splitlines()[: 2 if isinstance(error, Py4JJavaError) else 1])
        raise SluiceError(f"Spark job failed while extracting features: {said}") from None


def start_spark() -> None:
    """Import Spark, and start its JVM in a thread that waits for it most of the time."""
    import spark.features  # noqa: F401  (imports must not run in two threads)

    threading.Thread(target=_start_session, daemon=True).start()


def _start_session() -> None:
    from spark.session import session

    try:
        session()
    except SluiceError:
        traceback.print_exc()  # `extract` fails with the same error
