"""Carries out the decisions of `models.capacity.backlog` on a cluster: feeds topics, and reads the lag of a consumer group.

What consumes is not known here: any job with a group serves that reads the topics and commits. `drain` also needs it to be
stopped and started.
"""

import time
from collections.abc import Callable, Mapping
from typing import Final

from models.capacity.backlog.drain import DrainMeasurement
from models.capacity.backlog.injection import InjectionSearch
from models.capacity.backlog.lag import LagPoint
from models.errors import SluiceError
from testbeds.kafka.feeding.feeder import KafkaFeeder
from testbeds.kafka.offsets import OffsetReader

POLL_S: Final = 0.5


def inject(search: InjectionSearch, feeder: KafkaFeeder, shares: Mapping[str, float], reader: OffsetReader) -> None:
    """Feed as the search says until it has ended.

    Args:
        shares: of the rate, by the names of the feeds; together 1.

    Raises:
        SluiceError: the feeder or the broker has gone, or the group has committed nothing in a partition with records.
    """
    while (wanted := search.next()) is not None:
        feeder.offer({name: share * wanted.rate for name, share in shares.items()})
        search.observe(_readings(reader, feeder, wanted.seconds))
    feeder.offer(dict.fromkeys(shares, 0.0))


def drain(
    measurement: DrainMeasurement,
    fill: Callable[[float], None],
    start: Callable[[], None],
    stop: Callable[[], None],
    reader: Callable[[], OffsetReader],
    left_share: float,
) -> None:
    """Let a job work off a backlog until measuring has ended; the job is stopped at the end.

    Args:
        fill: writes so many records to the topics.
        reader: made when the job has started, since its group may not exist before.
        left_share: of the backlog; reading ends there.

    Raises:
        SluiceError: the broker has gone.
    """
    while (wanted := measurement.next()) is not None:
        stop()
        fill(wanted.records)
        start()
        try:
            begun = reader()
            left = left_share * point_of(begun).lag
            measurement.observe(_readings(begun, None, wanted.enough_s, least_lag=left))
        finally:
            stop()


def point_of(reader: OffsetReader) -> LagPoint:
    """The lag now.

    Raises:
        SluiceError: it is not known.
    """
    found = reader.read()
    if found.lag is None:
        raise SluiceError(
            "the consumer group has committed nothing in a partition that holds records; let it commit first"
        )
    return LagPoint(found.at_s, float(sum(one.end for one in found.partitions)), float(found.lag))


def _readings(
    reader: OffsetReader, feeder: KafkaFeeder | None, seconds: float, least_lag: float = -1.0
) -> list[LagPoint]:
    """For so long, or until the lag is down to the least."""
    until, points = time.monotonic() + seconds, [point_of(reader)]
    while (time.monotonic() < until or len(points) < 2) and points[-1].lag > least_lag:
        time.sleep(POLL_S)
        if feeder is not None:
            feeder.check()
        points.append(point_of(reader))
    return points
