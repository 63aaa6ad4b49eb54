"""The process that scales the jobs of a run: an autopilot for each, as `sluice autopilot` runs it, in the workload's time.

    python -m benchmarks.autopilot.acting.pilot ASKED.json

The limits are the same for all: those that have a unit of time are compressed as the policies are, as far as Flink reports in
time. Ends on SIGTERM.
"""

import importlib
import json
import logging
import signal
import sys
import threading
from pathlib import Path
from typing import Any, Final

from benchmarks.autopilot.acting import FACTOR
from benchmarks.autopilot.acting.contenders import BY_NAME, LEAST_BETWEEN_S
from benchmarks.autopilot.acting.scaled import ScaledTime
from flink_client.rest.client import FlinkRest
from models.errors import SluiceError
from models.scaling.control.limits import ControlLimits
from pipelines.control.autopilot import Autopilot
from pipelines.control.request import AutopilotRequest
from pipelines.observe.log_ends import BrokerLogEnds
from pipelines.store.workspace import Workspace

ROUND_REAL_S: Final = 2.5
ASK_REAL_S: Final = 0.5
"""From the request that has Flink fetch metrics to the reading of them."""
LIMITS: Final = ControlLimits(
    least_between_s=LEAST_BETWEEN_S / FACTOR,
    settle_s=2.0,
    stale_after_s=15.0,
    back_off_s=10.0,
    most_back_off_s=30.0,
    failed_checkpoints=5,
    checkpoint_s=30.0,
    respect_s=1.0,
)
_logger = logging.getLogger("acting.pilot")


def fly(asked: dict[str, Any], job: dict[str, Any], ended: threading.Event) -> None:
    """Scale one job until the end; an autopilot that has failed is followed by another, as a service would be."""
    while not ended.is_set():
        try:
            _fly(asked, job, ended)
        except SluiceError as error:
            _logger.error("%s: begins again: %s", job["name"], error)
            ended.wait(ROUND_REAL_S)


def _fly(asked: dict[str, Any], job: dict[str, Any], ended: threading.Event) -> None:
    one = BY_NAME[job["contender"]]
    request = AutopilotRequest(
        job=job["name"],
        flink_url=asked["url"],
        flink_name=job["job"],
        policy=one.policy,
        settings=one.settings_for(job["peak_rate"]),
        limits=LIMITS.model_copy(update={"most_slots": asked["most_slots"]}),
        timeout_s=30.0,
    )
    with FlinkRest(asked["url"], patience_s=2.0) as rest:
        log_ends = BrokerLogEnds(asked["bootstrap"]) if one.asks_broker else None
        autopilot = Autopilot(Workspace(asked["workspace"]), request, rest, log_ends=log_ends)
        autopilot.policy = ScaledTime(autopilot.policy, FACTOR)
        try:
            while not ended.wait(ROUND_REAL_S - ASK_REAL_S):
                autopilot.ask()
                ended.wait(ASK_REAL_S)
                if (made := autopilot.round()) is not None:
                    _logger.info("%s: %s: %s", job["name"], made.done, made.reason)
        finally:
            autopilot.close()


def main(path: str) -> None:
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s")
    logging.getLogger("httpx").setLevel(logging.WARNING)
    asked = json.loads(Path(path).read_text(encoding="utf-8"))
    ended = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: ended.set())
    threads = [threading.Thread(target=fly, args=(asked, job, ended)) for job in asked["jobs"]]
    importlib.import_module("models.scaling.sluice.outlook")  # compiles, which would hold up the first rounds
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


if __name__ == "__main__":
    main(sys.argv[1])
