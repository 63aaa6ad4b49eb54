"""The autopilots of a workspace as OpenMetrics, read from its files: it does not matter which processes run them."""

import threading
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from itertools import accumulate
from typing import Final, get_args

from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    InfoMetricFamily,
    Metric,
    StateSetMetricFamily,
)
from prometheus_client.registry import Collector, CollectorRegistry

from models.errors import SluiceError
from models.scaling.control.limits import Limit
from pipelines.control.files import AutopilotFiles, AutopilotState, StopSwitch, autopilot_jobs
from pipelines.monitoring.measures import OF_RUNNING, OF_STATE, PREFIX, PilotMeasure
from pipelines.monitoring.tally import BUCKETS_S, PilotTally
from pipelines.pages.autopilot.condition import Condition, condition
from pipelines.store.workspace import Workspace

DEFAULT_PORT: Final = 9464
HOST: Final = "127.0.0.1"
JOB: Final = "job_name"
"""Label of the job, as in Flink's own metrics; `job` is Prometheus's label of what it scrapes."""
_COUNTED: Final[tuple[tuple[str, str, str, Callable[[PilotTally], Mapping[str, int]]], ...]] = (
    ("decisions", "Rounds by what was done.", "done", lambda tally: tally.decisions),
    ("holds", "Rounds in which a limit kept the autopilot from acting.", "limit", lambda tally: tally.held),
    ("rescales", "Rescales that were tried, or in a dry run would have been.", "outcome", lambda tally: tally.rescales),
)
"""Name, meaning, label and values of each counter by label."""
_ENDS: Final = (*(f"{end:g}" for end in BUCKETS_S), "+Inf")


class _KnownPilot:
    """What is known of one job at one time."""

    def __init__(self, state: AutopilotState, switch: StopSwitch | None, tally: PilotTally, now: datetime) -> None:
        self.state, self.switch, self.tally = state, switch, tally
        self.condition = condition(state, switch, now)

    @property
    def runs(self) -> bool:
        return self.condition not in ("ended", "silent")


class AutopilotCollector(Collector):
    """Reads the workspace when it is scraped. Counters begin at 0 with the collector, as those of any process."""

    def __init__(self, workspace: Workspace, now: Callable[[], datetime] = lambda: datetime.now(UTC)) -> None:
        self._workspace, self._now, self._begin = workspace, now, now()
        self._tallies: dict[str, PilotTally] = {}
        self._lock = threading.Lock()

    def collect(self) -> Iterator[Metric]:
        """All families, each with the samples of all jobs."""
        with self._lock:
            jobs = autopilot_jobs(self._workspace)
            known, unreadable = {}, GaugeMetricFamily(
                f"{PREFIX}_unreadable", "1 if a file of the autopilot cannot be read.", labels=[JOB]
            )  # fmt: skip
            for job in jobs:
                try:
                    found = self._read(job)
                except (SluiceError, OSError):
                    unreadable.add_metric([job], 1.0)
                    continue
                unreadable.add_metric([job], 0.0)
                if found is not None:
                    known[job] = found
            self._tallies = {job: tally for job, tally in self._tallies.items() if job in jobs}
            yield unreadable
            yield from _families(known)

    def _read(self, job: str) -> _KnownPilot | None:
        files = AutopilotFiles(self._workspace, job)
        tally = self._tallies.setdefault(job, PilotTally(self._begin))
        tally.update(files)
        state = files.state()
        return None if state is None else _KnownPilot(state, files.switch(), tally, self._now())


def _families(known: dict[str, _KnownPilot]) -> Iterator[Metric]:
    running = {job: one.state for job, one in known.items() if one.runs}
    yield from (_gauge(measure, running) for measure in OF_RUNNING)
    yield from (_gauge(measure, {job: one.state for job, one in known.items()}) for measure in OF_STATE)
    yield _info(known)
    yield from _states(known)
    yield from _counters(known)
    yield _decision_times(known)


def _gauge(measure: PilotMeasure, states: dict[str, AutopilotState]) -> Metric:
    family = GaugeMetricFamily(f"{PREFIX}_{measure.name}", measure.meaning, labels=[JOB, *measure.labels])
    for job, state in states.items():
        for labels, value in measure.samples(state):
            family.add_metric([job, *labels], value)
    return family


def _info(known: dict[str, _KnownPilot]) -> Metric:
    family = InfoMetricFamily(PREFIX, "Policy of the autopilot, and the Flink that runs the job.", labels=[JOB])
    for job, one in known.items():
        family.add_metric([job], {"policy": one.state.policy, "flink": one.state.flink_url})
    return family


def _states(known: dict[str, _KnownPilot]) -> Iterator[Metric]:
    family = StateSetMetricFamily(f"{PREFIX}_condition", "What the autopilot does now.", labels=[JOB])
    held = StateSetMetricFamily(f"{PREFIX}_held", "Which limit holds it back now.", labels=[JOB])
    for job, one in known.items():
        family.add_metric([job], {name: name == one.condition for name in get_args(Condition)})
        if one.runs:
            now = None if one.state.newest is None else one.state.newest.held
            held.add_metric([job], {name: name == now for name in get_args(Limit)})
    yield family
    yield held


def _counters(known: dict[str, _KnownPilot]) -> Iterator[Metric]:
    for name, meaning, label, counts in _COUNTED:
        family = CounterMetricFamily(f"{PREFIX}_{name}", meaning, labels=[JOB, label])
        for job, one in known.items():
            for value, count in counts(one.tally).items():
                family.add_metric([job, value], count, created=one.tally.begin.timestamp())
        yield family
    down = CounterMetricFamily(f"{PREFIX}_downtime_seconds", "Downtime of all rescales.", labels=[JOB])
    for job, one in known.items():
        down.add_metric([job], one.tally.downtime_s, created=one.tally.begin.timestamp())
    yield down


def _decision_times(known: dict[str, _KnownPilot]) -> Metric:
    family = HistogramMetricFamily(
        f"{PREFIX}_decision_seconds",
        "From the metrics to the decision, of decisions that have a record.",
        labels=[JOB],
    )
    for job, one in known.items():
        counts = accumulate(one.tally.decision_times)
        buckets = [(end, float(count)) for end, count in zip(_ENDS, counts, strict=True)]
        family.add_metric([job], buckets, one.tally.decision_s)
    return family


def autopilot_registry(workspace: Workspace) -> CollectorRegistry:
    """A registry of the workspace's autopilots alone. It is not read before it is scraped."""
    registry = CollectorRegistry()
    registry.register(AutopilotCollector(workspace))
    return registry
