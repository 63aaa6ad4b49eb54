"""Records of autopilots: a job whose rate doubles for a while, and jobs in every other condition."""

import math
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from models.scaling.control.limits import ControlLimits
from pipelines.control.files import AutopilotFiles, AutopilotState, StopSwitch
from pipelines.control.record import AutopilotDecision, PolicyAdvice, PolicyOutlook, RescaleTaken, SeenJob, SeenVertex
from pipelines.store.workspace import Workspace

BUSY_JOB: Final = "clicks"
"""Its rate doubles, and its autopilot follows; one rescale is rolled back."""
STOPPED_JOB: Final = "orders"
SILENT_JOB: Final = "sensors"
DAMAGED_AUTOPILOT: Final = "torn"
PLACED: Final = {"placement": {"tm-1": {"source": 1, "count": 2}, "tm-2": {"count": 2}}, "as_placed": True}
SCRIPT_REASON: Final = "<script>document.title = 'broken in'</script>"


def seen(rate: float | None = 1000.0, lag_s: float | None = 0.5, tasks: int = 2, **other: Any) -> SeenJob:
    """A job of a source with one task and a vertex `count` with the others."""
    vertex = {"busyness": 0.6, "max_busyness": 0.75, "backpressure": 0.0, "observed_rate": rate}
    return SeenJob(
        arriving_rate=rate,
        read_rate=rate,
        lag_records=None if lag_s is None or rate is None else lag_s * rate,
        lag_s=lag_s,
        tasks=1 + tasks,
        slots=1 + tasks,
        slots_there=12,
        price_per_hour=0.05 * (1 + tasks),
        state_mb=64.0,
        staleness_s=2.5,
        interval_s=10.0,
        vertices={
            "source": SeenVertex(id="a" * 32, flink_name="Source: clicks", tasks=1, true_rate=9e3, **vertex),
            "count": SeenVertex(id="b" * 32, flink_name="count", tasks=tasks, true_rate=None, **vertex),
        },
        **other,
    )  # fmt: skip


def decided(number: int, at: datetime, job: str = BUSY_JOB, **changed: Any) -> AutopilotDecision:
    """A quiet decision, but for what is given."""
    given: dict[str, Any] = {
        "job": job, "number": number, "fence": 1, "decided_at": at, "flink_job": "c" * 32, "policy": "sluice",
        "seen": seen(), "advice": PolicyAdvice(reason="It keeps up.", parallelism=None), "done": "none",
        "reason": "It keeps up.", "decision_s": 0.01,
    }  # fmt: skip
    return AutopilotDecision(**(given | changed))


def rescale(before: int, after: int, **changed: Any) -> RescaleTaken:
    """Of the vertex `count`."""
    given: dict[str, Any] = {
        "intent": 1, "method": "in-place", "before": {"source": 1, "count": before},
        "after": {"source": 1, "count": after}, "seconds": 4.0, "downtime_s": 1.5,
    }  # fmt: skip
    return RescaleTaken(**(given | changed))


def outlook(rate: float, late_share: float = 0.004, capacity: float = 3000.0) -> PolicyOutlook:
    return PolicyOutlook(
        horizon_s=300.0, low=0.9 * rate, high=1.2 * rate, capacity=capacity, late_share=late_share, late_allowed=0.01
    )


def state_of(shown: AutopilotDecision | None, now: datetime, job: str = BUSY_JOB, **changed: Any) -> AutopilotState:
    """An autopilot that may act, and has just written its state, but for what is given."""
    given: dict[str, Any] = {
        "job": job, "flink_url": "http://flink:8081", "flink_name": job, "policy": "sluice", "settings": {},
        "dry_run": False, "limits": ControlLimits(price_per_slot_hour=0.05, dollars_per_hour=0.6, rescales_a_day=20),
        "phase": "observing", "fence": 1, "holder": "process 7 on flink-1", "started_at": now - timedelta(hours=3),
        "beat_at": now, "every_s": 10.0, "rescales_in_a_day": 2, "rolled_back_in_a_day": 1, "newest": shown,
    }  # fmt: skip
    return AutopilotState(**(given | changed))


def busy_decisions(now: datetime, minutes: int = 50) -> list[AutopilotDecision]:
    """One a minute until now: the rate doubles in the middle; 2 -> 4 tasks is rolled back once, and done later."""
    found, tasks = [], 2
    for number in range(1, minutes + 1):
        at = now - timedelta(minutes=minutes - number)
        rate = 1000.0 + (1000.0 if number > minutes // 2 else 0.0) + 100.0 * math.sin(number / 9)
        lag = 30.0 if minutes // 2 < number < minutes // 2 + 9 else 0.5
        taken: dict[str, Any] = {}
        if number == minutes // 2 + 2:
            why = "the placement hook serves one job, but 'other' runs on the cluster, too"
            failed = rescale(2, 4, why="no slots came within 30 s", not_placed=why)
            taken = {"done": "rolled-back", "rescale": failed, "reason": "Rolled back: no slots came within 30 s."}
        elif number == minutes // 2 + 6:
            taken = {
                "done": "rescaled",
                "rescale": rescale(2, 4, **PLACED),
                "reason": "Rescaled count 2 to 4 in place.",
            }
        elif minutes // 2 + 2 < number < minutes // 2 + 6:
            taken = {"done": "held-back", "held": "back-off", "reason": "Held back: the last rescale was rolled back."}
        if taken.get("done") == "rescaled":
            tasks = 4
        spent = 0.002 + 0.0025 * (number > minutes // 2 + 4)
        found.append(
            decided(number, at, seen=seen(rate, lag, tasks), outlook=outlook(rate, spent, 750.0 * tasks), **taken)
        )
    return found


def store_autopilots(workspace: Workspace, now: datetime | None = None, minutes: int = 50) -> None:
    """A busy job, a stopped one whose reason looks like a script, a silent dry run, and a damaged state."""
    now = now or datetime.now(UTC)
    busy = AutopilotFiles(workspace, BUSY_JOB)
    decisions = busy_decisions(now, minutes)
    for one in decisions:
        busy.keep(one)
    busy.keep_state(state_of(decisions[-1], now, every_s=1.0))

    stopped = AutopilotFiles(workspace, STOPPED_JOB)
    last = decided(1, now - timedelta(minutes=4), STOPPED_JOB, done="held-back", held="stopped", seen=unknown())
    stopped.keep(last)
    stopped.keep_state(state_of(last, now, STOPPED_JOB, phase="stopped", policy="ds2", resource="streaming/orders"))
    stopped.stop(StopSwitch(job=STOPPED_JOB, by="ada", reason=SCRIPT_REASON, stopped_at=now - timedelta(hours=2)))

    silent = AutopilotFiles(workspace, SILENT_JOB)
    early = now - timedelta(minutes=12)
    silent.keep_state(state_of(decided(3, early, SILENT_JOB), early, SILENT_JOB, dry_run=True, policy="static"))
    workspace.write_bytes(f"autopilots/{DAMAGED_AUTOPILOT}/state.json", b'{"job": "torn"')


def unknown() -> SeenJob:
    """Nothing but a fault."""
    return SeenJob(
        arriving_rate=None, read_rate=None, lag_records=None, lag_s=None, tasks=None, slots=None, slots_there=None,
        staleness_s=None, interval_s=None, vertices={}, faults=("Flink does not answer",),
    )  # fmt: skip
