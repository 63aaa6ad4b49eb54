"""Reads the source rate of a job once, from the origin that its file names."""

from models.scaling.decisions.overload import SourceReading
from pipelines.inputs.operations.operations import RateOrigin
from pipelines.rates.flink import read_from_flink
from pipelines.rates.prometheus import read_from_prometheus


def read_rate(origin: RateOrigin, job: str) -> SourceReading:
    """The rate as read, not validated.

    Args:
        job: name of the job, for Flink if the origin names none.

    Raises:
        RateUnknown: the server does not answer, is too slow, or gives an invalid answer.
    """
    if origin.prometheus is not None:
        return read_from_prometheus(origin.prometheus, origin.timeout_s)
    assert origin.flink is not None
    return read_from_flink(origin.flink, job, origin.timeout_s)


def describe(origin: RateOrigin, job: str) -> str:
    """The origin of a rate, in words."""
    if origin.prometheus is not None:
        return f"Prometheus at {origin.prometheus.url}: {origin.prometheus.query}"
    assert origin.flink is not None
    return f"Flink at {origin.flink.url}: numRecordsOutPerSecond of the sources of {origin.flink.job or job}"
