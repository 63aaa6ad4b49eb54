"""How long a running Airflow takes from a change of the source rate to a stored plan version.

    python -m benchmarks.airflow.replan_latency [--changes 20] [--workspace FOLDER]
    python -m benchmarks.airflow.replan_latency --at-once 50 [--workspace FOLDER]

Starts an Airflow (scheduler, triggerer, DAG processor, API server, SQLite) and a server that speaks Prometheus's API, both
on 127.0.0.1. Jobs are measured and planned on the simulator first. Then their rates change one after the other, and the
benchmark waits for the new plan after each change. Times, by the clock of this machine:

    noticed    from the new rate to the trigger's event (polls of 0.5 s, two in a row)
    replanned  from the event to the file of the new version
    planning   part of `replanned`: from the task's start of planning to the plan, from its log

With `--at-once` the rates of so many jobs (`copied_jobs`) change at the same moment, and one more changes every few seconds,
by events through Airflow's API. Printed are the times until the plans of the others, and how often the restless job was planned
until the last of them.
"""

import argparse
import os
import re
import shutil
import signal
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, Final

import yaml

ROOT: Final = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "support"))

from answering.prometheus import PrometheusServer  # noqa: E402
from benchmarks.airflow.copied_jobs import RATE, CopiedJobs, airflow_settings  # noqa: E402
from pipelines.inputs.plan_request import PlanRequest  # noqa: E402
from pipelines.progress import TerminalProgress  # noqa: E402
from pipelines.rates.record import last_event  # noqa: E402
from pipelines.run import PipelineRun  # noqa: E402
from pipelines.stages import run_all  # noqa: E402
from pipelines.store.plans import PlanStore  # noqa: E402
from pipelines.store.workspace import Workspace  # noqa: E402
from servers.airflow import RunningAirflow  # noqa: E402

RATES: Final = {"nexmark-q1": 400_000.0, "wordcount": 30_000.0}
"""Jobs, and the rates they are planned for at first."""
FACTORS: Final = (1.5, 2.0, 1.3, 0.7, 1.0)
"""Of those rates, one after the other: each leaves the band of the one before."""
WARM_UP_FACTOR: Final = 3.0
"""Of the first job's rate, before: the first of the factors leaves the band of this one, too."""
POLL_S: Final = 0.5
BAND: Final = {"polls": 2, "poll_interval_s": POLL_S, "cool_down_s": 0.0}
PATIENCE_S: Final = 180.0
RESTLESS: Final = "restless"
EVERY_S: Final = 3.0
"""Between two changes of the restless job."""
FALL: Final = 0.2
"""Of the rate when all change at once: to plans of some twenty tasks."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--changes", type=int, default=20)
    parser.add_argument("--at-once", type=int, default=0, help="jobs whose rates change at the same moment")
    parser.add_argument("--workspace", type=Path, help="workspace to use and keep; default: a temporary one")
    asked = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that Airflow is stopped, too
    with tempfile.TemporaryDirectory(prefix="sluice-latency-") as temporary, PrometheusServer() as prometheus:
        folder = asked.workspace or Path(temporary) / "workspace"
        os.environ |= airflow_settings(folder) | {"SLUICE_CATALOGUE": str(Path(temporary) / "catalogue")}
        _write_catalogue(Path(temporary) / "catalogue", prometheus)
        workspace = Workspace(folder)
        if asked.at_once:
            _copy(workspace, folder.parent / "jobs", asked.at_once, prometheus)
        else:
            _plan(workspace)
        airflow = RunningAirflow(Path(temporary) / "airflow", Path(temporary) / "airflow.log")
        try:
            airflow.log_in()
            airflow.unpause("replan")
            if asked.at_once:
                _print_at_once(*_at_once(airflow, workspace, prometheus))
                return
            _warm_up(airflow, workspace, prometheus)
            rows = [_measured(number, workspace, prometheus, Path(temporary)) for number in range(asked.changes)]
        finally:
            airflow.stop()
    _print(rows)


def _write_catalogue(folder: Path, prometheus: PrometheusServer) -> None:
    (folder / "jobs").mkdir(parents=True)
    shutil.copytree(ROOT / "clusters", folder / "clusters")
    for sql in (ROOT / "jobs").glob("*.sql"):
        shutil.copy(sql, folder / "jobs")
    for job in RATES:
        document = yaml.safe_load((ROOT / "jobs" / f"{job}.yaml").read_text())
        origin = {"prometheus": {"url": prometheus.url, "query": job}}
        operations = {"replan": {"rates": origin, **BAND}}
        (folder / "jobs" / f"{job}.yaml").write_text(yaml.safe_dump(document | {"operations": operations}))


def _plan(workspace: Workspace) -> None:
    for job, rate in RATES.items():
        if job not in PlanStore(workspace).jobs():
            request = PlanRequest(job=job, rate=rate, max_measurements=3, max_task_slots=12)
            run_all(PipelineRun(request, workspace, TerminalProgress()))


def _warm_up(airflow: RunningAirflow, workspace: Workspace, prometheus: PrometheusServer) -> None:
    """One change that is not counted: the first one of a new Airflow also waits for its processes to start."""
    job = next(iter(RATES))
    prometheus.rates = {name: PlanStore(workspace).current(name).target_rate for name in RATES}
    before = PlanStore(workspace).versions(job)[-1]
    prometheus.rates[job] = WARM_UP_FACTOR * RATES[job]
    airflow.wait_for(lambda: PlanStore(workspace).versions(job)[-1] > before)


def _measured(number: int, workspace: Workspace, prometheus: PrometheusServer, temporary: Path) -> dict[str, Any]:
    """Change a rate, and wait for the plan."""
    job = list(RATES)[number % len(RATES)]
    rate = RATES[job] * FACTORS[number // len(RATES) % len(FACTORS)]
    store = PlanStore(workspace)
    version = store.versions(job)[-1] + 1
    file = Path(store.uri(job, version).removeprefix("file://"))
    changed_at = time.time()
    prometheus.rates[job] = rate
    _wait(file)
    event = last_event(workspace, job)
    assert event is not None and event.change.new_rate == rate and event.plan_version == version - 1, event
    reported_at = Path(workspace.uri(event.key).removeprefix("file://")).stat().st_mtime
    row = {
        "job": job,
        "rate": rate,
        "noticed": reported_at - changed_at,
        "replanned": file.stat().st_mtime - reported_at,
        "planning": _planning_s(temporary, number),
    }
    print(f"{number + 1:3} {job:12} {rate:12,.0f}  " + "  ".join(f"{k} {row[k]:6.2f} s" for k in TIMES), flush=True)
    return row


TIMES: Final = ("noticed", "replanned", "planning")
_PLANNED: Final = re.compile(r"replan: planned \S+ for \S+ records/s in ([0-9.]+) s")


def _planning_s(temporary: Path, number: int) -> float:
    """From the log of the last task; one more task than counted changes has ended."""
    until = time.monotonic() + PATIENCE_S
    while time.monotonic() < until:
        logs = sorted((temporary / "airflow").rglob("*plan_again*/**/*.log"), key=lambda log: log.stat().st_mtime)
        found = [match[1] for log in logs if (match := _PLANNED.search(log.read_text(errors="replace")))]
        if len(found) == number + 2:
            return float(found[-1])
        time.sleep(0.1)
    raise SystemExit("the logs of the tasks do not say how long planning took")


def _copy(workspace: Workspace, folder: Path, count: int, prometheus: PrometheusServer) -> None:
    jobs, known = CopiedJobs(workspace, folder), set(PlanStore(workspace).jobs())
    for name in (f"job-{number:03}" for number in range(count)):
        # Polled every few seconds: they are to be noticed at about the same time, not to keep the machine busy.
        origin = {"prometheus": {"url": prometheus.url, "query": name}}
        operations = {"replan": {"rates": origin, **BAND, "poll_interval_s": 5.0}}
        if name in known:
            jobs.write_file(name, operations)
        else:
            jobs.add(name, operations)
        prometheus.rates[name] = PlanStore(workspace).current(name).target_rate
    if RESTLESS not in known:
        jobs.add(RESTLESS, None)


def _at_once(
    airflow: RunningAirflow, workspace: Workspace, prometheus: PrometheusServer
) -> tuple[list[float], list[float]]:
    """Seconds from the change to the plans: those of the jobs that change once, and those of the restless one."""
    store = PlanStore(workspace)
    (asset,) = airflow.wait_for(lambda: airflow.call("GET", "/api/v2/assets?name_pattern=sluice-rate-change")["assets"])
    files = [Path(_next_file(store, job)) for job in prometheus.rates]
    restless = len(store.versions(RESTLESS))
    changed_at, sent = time.time(), 0
    for job, rate in list(prometheus.rates.items()):
        prometheus.rates[job] = FALL * rate
    while not all(file.exists() for file in files):
        if time.time() > changed_at + len(files) * PATIENCE_S:
            raise SystemExit(f"{sum(not file.exists() for file in files)} plans are missing")
        if time.time() > changed_at + sent * EVERY_S:
            sent += 1
            extra = {"job": RESTLESS, "rate": FALL * RATE * (1 + sent % 2)}
            airflow.call("POST", "/api/v2/assets/events", {"asset_id": asset["id"], "extra": extra})
        time.sleep(0.2)
    again = [Path(store.uri(RESTLESS, v).removeprefix("file://")) for v in store.versions(RESTLESS)[restless:]]
    print(f"the restless job changed {sent} times", flush=True)
    return tuple(sorted(file.stat().st_mtime - changed_at for file in some) for some in (files, again))  # type: ignore[return-value]


def _next_file(store: PlanStore, job: str) -> str:
    return store.uri(job, store.versions(job)[-1] + 1).removeprefix("file://")


def _print_at_once(once: list[float], again: list[float]) -> None:
    print(
        f"{len(once)} jobs that changed at once: first plan after {once[0]:.1f} s, median {statistics.median(once):.1f} s, ",
        end="",
    )
    print(f"last {once[-1]:.1f} s; {60 * len(once) / once[-1]:.0f} plans a minute")
    print(f"the restless job was planned {len(again)} times: after {', '.join(f'{s:.1f}' for s in again) or '-'} s")


def _wait(file: Path) -> None:
    until = time.monotonic() + PATIENCE_S
    while not file.exists():
        if time.monotonic() > until:
            raise SystemExit(f"{file} did not appear within {PATIENCE_S:g} s")
        time.sleep(0.05)


def _print(rows: list[dict[str, Any]]) -> None:
    print(f"\n{len(rows)} changes       min   median      max")
    for name in TIMES:
        values = [row[name] for row in rows]
        print(f"{name:12} {min(values):7.2f}  {statistics.median(values):7.2f}  {max(values):7.2f}  s")


if __name__ == "__main__":
    main()
