"""The source rate of a job, read once from where its file says."""

from models.errors import SluiceError
from models.operations import RateOrigin


class RateUnknown(SluiceError):
    """The rate could not be read now; it may be the next time."""


def read_rate(origin: RateOrigin, job: str) -> float:
    """Records/s at the sources together, as they are told: not checked for sense.

    Args:
        job: name of the job, by which Flink is asked where the origin names none.

    Raises:
        RateUnknown: whoever was asked is not there, is too slow, or answers something else.
    """
    # Both clients take a while to import, and a job has one origin.
    if origin.prometheus is not None:
        from pipelines.rates.prometheus import read_from_prometheus

        return read_from_prometheus(origin.prometheus, origin.timeout_s)
    from pipelines.rates.flink import read_from_flink

    assert origin.flink is not None
    return read_from_flink(origin.flink, job, origin.timeout_s)


def describe(origin: RateOrigin, job: str) -> str:
    """Where a rate comes from, in words."""
    if origin.prometheus is not None:
        return f"Prometheus at {origin.prometheus.url}: {origin.prometheus.query}"
    assert origin.flink is not None
    return f"Flink at {origin.flink.url}: numRecordsOutPerSecond of the sources of {origin.flink.job or job}"
