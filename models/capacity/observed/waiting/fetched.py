"""What waits before a source of Kafka, from what its consumer has fetched (metrics of Kafka's consumer, which Flink reports).

    f   records that the consumer has fetched (`records-consumed-total`)
    u   records that the source has read of them (`numRecordsIn`)
    p   records beyond the last fetch, as of then (`pendingRecords`)
    s   time since the consumer was asked for more, seconds (`last-poll-seconds-ago`)
    r   records/s that arrive

    waiting = f - u + p + r s                                                                      (1)

Where more arrives at once than the consumer hands out at a time, the rest is in none of these, and f counts a fetch only once
all of it was handed out. So (1) holds while less than that is fetched and not read, and f grows with u.
"""

from typing import Final

from models.capacity.observed.counters.counts import TaskCounts

HANDED_OUT: Final = 500.0
"""Records that a consumer hands out at a time at most (`max.poll.records`, Kafka's default)."""


def waiting_by_fetches(before: TaskCounts | None, now: TaskCounts, rate: float) -> float | None:
    """Eq. 1, in records that the source emits.

    Args:
        before: the same task at the reading before; None where there is none.
        rate: r, of this task, as far as it is known.

    Returns:
        None where its source is none of Kafka's, where it has read nothing yet, and where (1) does not hold.
    """
    if now.pending is None or now.fetched is None or now.read is None or not now.read:
        return None
    unread = now.fetched - now.read
    fresh = before is None or before.attempt != now.attempt or (before.read or 0.0) > now.read
    fetched, read = (0.0, 0.0) if before is None or fresh else (before.fetched or 0.0, before.read or 0.0)
    if not 0.0 <= unread < HANDED_OUT or (now.read > read and now.fetched <= fetched):
        return None
    return unread * now.emitted_per_read + now.pending + rate * (now.polled_s or 0.0)
