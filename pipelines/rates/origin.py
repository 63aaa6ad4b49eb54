"""Reads the source rate of a job once, from the origin that its file names."""

from models.scaling.decisions.overload import SourceReading
from pipelines.inputs.operations import RateOrigin
from pipelines.rates.flink import read_from_flink
from pipelines.rates.prometheus import read_from_prometheus


def read_rate(origin: RateOrigin, job: str) -> SourceReading:
    """The rate as it is read: not checked for sense.

    Args:
        job: name of the job, by which it is looked up in Flink where the origin names none.

    Raises:
        RateUnknown: the server does not answer, is too slow, or answers something else.
    """
    if origin.prometheus is not None:
        return read_from_prometheus(origin.prometheus, origin.timeout_s)
    assert origin.flink is not None
    return read_from_flink(origin.flink, job, origin.timeout_s)


def describe(origin: RateOrigin, job: str) -> str:
    """Where a rate comes from, in words."""
    if origin.prometheus is not None:
        return f"Prometheus at {origin.prometheus.url}: {origin.prometheus.query}"
    assert origin.flink is not None
    return f"Flink at {origin.flink.url}: numRecordsOutPerSecond of the sources of {origin.flink.job or job}"
