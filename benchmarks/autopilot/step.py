"""From a step of +60 % in the rate to restored capacity, by an autopilot that rescales a real Flink in place.

    python -m benchmarks.autopilot.step [--flink-version 2.3] [--policy ds2] [--steps 5]

Word count on two local TaskManagers, whose operators take stated times for a record. At the lower rate one task of Count is
busy 84 % of the time; at the higher one it needs two. A step is restored when all tasks run that were asked for. Between steps
the rate and the tasks are set back. Metrics are fetched every second, and the policy decides every 5 s.
"""

import argparse
import tempfile
import threading
import time
from pathlib import Path
from statistics import median

import yaml

from flink_client.rest.client import FlinkRest
from flink_client.rest.waiting import wait_for
from models.job import Job
from models.scaling.control.limits import ControlLimits
from pipelines.control.autopilot import Autopilot
from pipelines.control.record import AutopilotDecision
from pipelines.control.request import AutopilotRequest
from pipelines.control.running import fly
from pipelines.store.workspace import Workspace
from testbeds.feeding.control import SourceControl
from testbeds.flink.local.distribution import RELEASES
from testbeds.flink.local.processes import LocalCluster
from testbeds.flink.local.profile import Profile, TaskManager
from testbeds.flink.programs.stated_costs import Payment, dataflow_program

ROOT = Path(__file__).resolve().parents[2]
RATE, STEP = 700.0, 1.6
SETTINGS = {
    "ds2": {"policy_interval_s": 5.0, "warm_up_intervals": 0},
    "sluice": {"interval_s": 5.0, "least_between_s": 20.0, "restart_s": 2.0},
}
CALM_S = 45.0
"""Time at the lower rate before each step."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--flink-version", choices=RELEASES, default="2.3")
    parser.add_argument("--policy", choices=SETTINGS, default="ds2")
    parser.add_argument("--steps", type=int, default=5)
    asked = parser.parse_args()
    job = Job.model_validate(yaml.safe_load((ROOT / "jobs" / "wordcount.yaml").read_text()))
    limits = ControlLimits(settle_s=3.0, least_between_s=5.0, respect_s=0.0)
    with (
        LocalCluster(release=RELEASES[asked.flink_version]) as cluster,
        SourceControl() as control,
        tempfile.TemporaryDirectory() as folder,
    ):
        cluster.ensure(Profile((TaskManager("tm1", 3, 900), TaskManager("tm2", 3, 900))))
        control.offer({"source": RATE})
        tasks = {"source": 1, "flatmap": 1, "count": 1}
        program = dataflow_program(job, tasks, control.address, {}, payment=Payment.PACED)
        rest = cluster.rest
        id_ = rest.run(cluster.uploaded(cluster.kit), program)
        rest.wait_until_running(id_, 120.0)
        small = rest.requirements(id_)
        request = AutopilotRequest("wordcount", rest.url, id_, asked.policy, SETTINGS[asked.policy], limits)
        stored: list[AutopilotDecision] = []
        stop = threading.Event()
        with FlinkRest(rest.url, timeout_s=10.0, patience_s=0.0) as own:
            pilot = Autopilot(Workspace(folder), request, own)
            thread = threading.Thread(target=fly, args=(pilot, stored.append, stop), daemon=True)
            thread.start()
            found = [step(cluster, control, id_, small, stored) for _ in range(asked.steps)]
            stop.set()
            thread.join(30.0)
    took = sorted(seconds for seconds, _ in found)
    print(
        f"Flink {asked.flink_version}, {asked.policy}: restored {median(took):.1f} s after the step (median of {len(took)}; "
        f"{took[0]:.1f} to {took[-1]:.1f}); decided in {max(d.decision_s for _, d in found):.3f} s at most; the rescale itself "
        f"{median(d.rescale.seconds or 0.0 for _, d in found if d.rescale):.1f} s"
    )


def step(
    cluster: LocalCluster, control: SourceControl, id_: str, small: dict[str, int], stored: list[AutopilotDecision]
) -> tuple[float, AutopilotDecision]:
    """Seconds from a step until the tasks run that it takes, and the decision."""
    control.offer({"source": RATE})
    cluster.rest.require(id_, small, least=1)
    cluster.rest.wait_until_running(id_, 60.0, small)
    time.sleep(CALM_S)
    before = len(stored)
    control.offer({"source": RATE * STEP})
    began = time.time()
    decision = wait_for(
        lambda: next((d for d in stored[before:] if d.done == "rescaled"), None), 120.0, "a rescale", pause_s=0.1
    )
    assert decision.rescale is not None
    seconds = decision.decided_at.timestamp() - began
    print(f"{seconds:5.1f} s, of which the rescale {decision.rescale.seconds:.1f} s: {decision.reason}", flush=True)
    return seconds, decision


if __name__ == "__main__":
    main()
