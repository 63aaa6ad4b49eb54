"""What is known of the keyed inputs of a pipeline run's job, for its stage `features`."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from models.dataflow import Partitioning
from models.errors import InvalidInput, SluiceError
from models.job import Job
from models.keys.distribution import key_distribution
from models.keys.shares import KeyedInput
from models.schema import Format
from pipelines.inputs.catalogue import SQL_SUFFIX, file_of_job, load_job_file
from pipelines.keys.stream import RecordedStream
from pipelines.store.digests import digest
from testbeds.flink.feeding.recordings import digest_of

KEYS_FILE: Final = "keys.json"
"""The output, in the run."""
PARALLELISM: Final = (1, 2, 4, 8, 16, 32, 64)
"""What shares are stated for; those at others can be computed from them."""

Recorded = Mapping[str, Sequence[RecordedStream]]
"""By operator."""


class KeyedInputs(Format):
    """The content of `keys.json`: one for each operator whose input is hash-partitioned."""

    inputs: tuple[KeyedInput, ...]


def keyed_operators(job: Job) -> tuple[str, ...]:
    """Operators that an edge is hash-partitioned to, in the order of the job."""
    keyed = {edge.downstream for edge in job.edges if edge.partitioning is Partitioning.HASH}
    return tuple(name for name in job.order if name in keyed)


def recorded_streams(named: str, job: Job) -> Recorded:
    """The recorded streams that the file of a job names; a relative path is beside that file.

    Args:
        named: the job's name in the catalogue, or the path of its file.

    Raises:
        InvalidInput: one is given for an operator without keys.
    """
    path = file_of_job(named)
    if path.suffix == SQL_SUFFIX:
        return {}
    recorded, keyed = load_job_file(named).recorded, keyed_operators(job)
    for name in recorded:
        if name not in keyed:
            raise InvalidInput(
                f"{path}: 'recorded' must name operators that records are hash-partitioned to, but names {name!r}; they "
                f"are {', '.join(keyed) or 'none'}"
            )
    return {name: [_beside(path, stream) for stream in streams] for name, streams in recorded.items()}


def _beside(path: Path, stream: RecordedStream) -> RecordedStream:
    if "://" in stream.file:
        return stream
    return stream.model_copy(update={"file": str((path.parent / stream.file).resolve())})


def digests_of(recorded: Recorded) -> dict[str, str]:
    """Digest of what is recorded for each operator: the streams, and the content of their files where those are local."""
    return {
        f"recorded {name}": digest([[one, *(digest_of(file) for file in _files(one))] for one in streams])
        for name, streams in recorded.items()
    }


def _files(stream: RecordedStream) -> list[Path]:
    path = Path(stream.file)
    if "://" in stream.file or not path.exists():
        return []
    return sorted(file for file in path.rglob("*") if file.is_file()) if path.is_dir() else [path]


def keyed_inputs(job: Job, recorded: Recorded, uris: Sequence[str]) -> KeyedInputs:
    """What recorded streams and samples say of the keys of every keyed operator.

    Args:
        uris: of the samples of all measurement runs.

    Raises:
        InvalidInput: a recorded stream cannot be used.
        SluiceError: Spark failed.
    """
    keyed, seen = keyed_operators(job), records_by_task(uris)
    wanted = [p for p in PARALLELISM if job.key_groups is None or p <= job.key_groups]
    made = []
    for name in keyed:
        known = KeyedInput(operator=name, source="samples", seen=tuple(seen.get(name, ())))
        if name in recorded:
            known = _with_recording(known, recorded[name], wanted, job.key_groups)
        made.append(known.with_shares(wanted, job.key_groups))
    return KeyedInputs(inputs=tuple(made))


def _with_recording(
    known: KeyedInput, streams: Sequence[RecordedStream], wanted: Sequence[int], total: int | None
) -> KeyedInput:
    from pipelines.keys.recorded import sketch_of  # starts Spark

    sketch, *others = (sketch_of(stream, wanted, total) for stream in streams)
    for other in others:
        if other.measure != sketch.measure:
            raise InvalidInput(
                f"the recorded streams of {known.operator!r} must have the same 'keyed_by' and all or none a 'time'"
            )
        sketch.merge(other)
    return known.model_copy(
        update={
            "source": "recording",
            "distribution": key_distribution(sketch, wanted, total, streams[0].window_s),
            "groups": tuple(sketch.groups.tolist()),
        }
    )


def records_by_task(uris: Sequence[str]) -> dict[str, list[tuple[float, ...]]]:
    """Records of each task while measuring, by operator: a list for each measurement run in which some came.

    Raises:
        SluiceError: Spark failed.
    """
    from pyspark.errors import PySparkException

    from spark.features import task_totals
    from spark.samples import read_samples
    from spark.session import session

    try:
        totals = task_totals(read_samples(session(), uris)).select("run", "operator", "task", "records_in").toArrow()
    except PySparkException as error:
        raise SluiceError(f"Spark job failed while reading samples: {str(error).splitlines()[0]}") from None
    tasks: dict[tuple[str, str], dict[int, float]] = {}
    for row in totals.sort_by([("run", "ascending"), ("task", "ascending")]).to_pylist():
        tasks.setdefault((row["operator"], row["run"]), {})[row["task"]] = row["records_in"]
    found: dict[str, list[tuple[float, ...]]] = {}
    for (operator, _), records in tasks.items():
        # Without the records of a task, it is not known which key groups are whose.
        if sum(records.values()) > 0 and list(records) == list(range(len(records))):
            found.setdefault(operator, []).append(tuple(records.values()))
    return found
