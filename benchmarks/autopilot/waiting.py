"""What an autopilot sees of what waits, by Flink's metrics alone and by the broker, after a jump of the rate and a rescale.

    python -m benchmarks.autopilot.waiting [--flink-version 2.3]

The two jobs of `autopilot/runs.py` are 80 % busy with half of the peak rate; then all of it arrives, and later they get the
tasks that it needs. Two sensors look at each in every round, as that of an autopilot does, one of which asks the broker.
Beside them stands what was not committed: it has all that waits, and what was processed since the last checkpoint, a second
of records at most while nothing is held back.
"""

import argparse
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from typing import Final

from rich.console import Console
from rich.table import Table

from benchmarks.autopilot.acting.jobs import KINDS, PEAK_REAL, UTILIZATION, JobKind
from benchmarks.autopilot.acting.lab import ActingLab, acting_lab, real_sleep_until
from benchmarks.autopilot.acting.pilot import ASK_REAL_S, ROUND_REAL_S
from flink_client.rest.client import FlinkRest
from pipelines.control.sensing import Sensor
from pipelines.observe.log_ends import BrokerLogEnds
from testbeds.flink.local.distribution import RELEASES
from testbeds.kafka.feeding.feeder import KafkaFeeder
from testbeds.kafka.offsets import OffsetReader

TOPIC: Final = "jump"
SLOTS: Final = 56
SETTLE_REAL_S: Final = 15.0
BUSY_TASKS: Final = UTILIZATION / 0.8
"""`JobKind.tasks` of so much of a rate are 80 % busy with all of it."""
JUMP, RESCALE, END = 8, 12, 24
"""Rounds."""
SHOWN_FROM: Final = 7


class Watched:
    """A job, and what is seen of it."""

    def __init__(self, lab: ActingLab, kind: JobKind) -> None:
        self.kind, self._lab = kind, lab
        self.job = lab.enter(kind, kind.name, TOPIC, BUSY_TASKS * PEAK_REAL / 2)

    def begin(self, rest: FlinkRest) -> None:
        """Once it has committed something."""
        connection = self._lab.broker.connection
        by_broker = BrokerLogEnds(connection.bootstrap)
        self._offsets = OffsetReader(connection, [TOPIC], self.job.name)
        self.sensors = [Sensor(rest, self.job.id, frozenset(), time.monotonic, ends) for ends in (None, by_broker)]

    def rescale(self) -> None:
        tasks = self.kind.tasks(BUSY_TASKS * PEAK_REAL).values()
        self._lab.rest.require(self.job.id, dict(zip(self.job.tasks, tasks, strict=True)))
        for sensor in self.sensors:
            sensor.changed()

    def seen(self) -> list[str]:
        return [self.kind.name, str(self._offsets.read().lag), *map(_waiting, self.sensors)]


def _waiting(sensor: Sensor) -> str:
    """Records before the sources, and inside the job."""
    activity = sensor.look().activity
    if activity is None:
        return "-"
    before = sum(float(one.lag_records.sum()) for one in activity.vertices.values())
    return f"{before:.0f} + {sum(activity.in_flight.values()):.0f}"


def _rounds(jobs: Sequence[Watched], feeder: KafkaFeeder) -> Iterator[list[str]]:
    begin = time.monotonic()
    for number in range(END):
        real_sleep_until(number * ROUND_REAL_S, begin)
        if number == JUMP:
            feeder.offer({TOPIC: PEAK_REAL})
        if number == RESCALE:
            for one in jobs:
                one.rescale()
        for one in jobs:
            for sensor in one.sensors:
                sensor.ask()
        time.sleep(ASK_REAL_S)
        for one in jobs:
            row = [f"{time.monotonic() - begin - JUMP * ROUND_REAL_S:+.1f}", *one.seen()]
            if number >= SHOWN_FROM:
                yield row


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--flink-version", default="2.3", choices=list(RELEASES))
    options = parser.parse_args(arguments)
    table = Table(
        "s after the jump", "job", "not committed", "by Flink: before sources + inside", "by broker: the same"
    )
    with ExitStack() as stack:
        lab = stack.enter_context(acting_lab(RELEASES[options.flink_version], SLOTS))
        feeder = stack.enter_context(lab.fed([TOPIC]))
        jobs = [Watched(lab, kind) for kind in KINDS.values()]
        lab.wait_until_running([one.job for one in jobs])
        feeder.offer({TOPIC: PEAK_REAL / 2})
        time.sleep(SETTLE_REAL_S)
        for one in jobs:
            one.begin(stack.enter_context(FlinkRest(lab.rest.url, patience_s=2.0)))
        for row in _rounds(jobs, feeder):
            table.add_row(*row)
    console = Console(width=120)
    console.print(table)
    rescale_s = (RESCALE - JUMP) * ROUND_REAL_S
    console.print(
        f"Flink {options.flink_version}; rescaled {rescale_s:g} s after the jump; -: unknown since the rescale"
    )


if __name__ == "__main__":
    main()
