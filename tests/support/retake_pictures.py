"""Take the picture of the plan pages in the README again: docs/images/pages-jobs.png.

    PYTHONPATH=plugins:tests/support python tests/support/retake_pictures.py

Plans three jobs in a temporary workspace, one of them twice, rolls one back, starts the Airflow of `make airflow` on free
ports, waits until its components are healthy, and photographs the page with headless Chromium, unedited. It takes some
minutes.
"""

import json
import os
import shutil
import sys
import tempfile
from datetime import UTC, datetime
from pathlib import Path

from playwright.sync_api import sync_playwright

from pipelines.inputs.plan_request import PlanRequest
from pipelines.planning.replan import replan
from pipelines.run import PipelineRun
from pipelines.stages import run_all
from pipelines.store.plans import PlanStore
from pipelines.store.workspace import Workspace
from running_airflow import RunningAirflow

ROOT = Path(__file__).parents[2]
PICTURE = ROOT / "docs" / "images" / "pages-jobs.png"
WIDTH = 1280
PATIENCE_MS = 300_000


def main() -> None:
    chromium = shutil.which("chromium") or shutil.which("google-chrome")
    if chromium is None:
        sys.exit("this needs Chromium: apt-get install chromium")
    with tempfile.TemporaryDirectory(prefix="sluice-pictures-") as temporary:
        folder = Path(temporary)
        _plan(Workspace(folder / "workspace"))
        airflow = RunningAirflow(folder / "home", folder / "airflow.log", _settings(folder))
        try:
            airflow.log_in()
            airflow.wait_for(lambda: _is_healthy(airflow))
            _photograph(airflow, chromium)
        finally:
            airflow.stop()
    print(f"wrote {PICTURE.relative_to(ROOT)}")


def _plan(workspace: Workspace) -> None:
    """Three jobs: one replanned, one planned from published measurements, one pinned by a rollback."""
    short = {"max_measurements": 3, "max_task_slots": 12}
    for job, rate in (("nexmark-q1", 2_500_000.0), ("nexmark-q11", 60_000.0)):
        run_all(PipelineRun(PlanRequest(job=job, rate=rate, **short), workspace))
        replan(workspace, job, 1.2 * rate)
    published = ROOT / "tests" / "data" / "streambed" / "search_q5.csv"
    request = {"testbed": "recorded", "measurements": str(published), "measurement_rows": 14, "model": "log"}
    run_all(PipelineRun(PlanRequest(job="nexmark-q5", rate=2_500_000.0, **request), workspace))
    now = datetime.now(UTC).isoformat(timespec="seconds")
    PlanStore(workspace).rollback("nexmark-q11", 1, now, by="Ada", reason="the lag grew")


def _settings(folder: Path) -> dict[str, str]:
    lines = (ROOT / "docker" / "airflow.env").read_text().splitlines()
    connections = "sluice_airflow.standing.sqlite"
    return {
        **dict(line.split("=", 1) for line in lines if line and not line.startswith("#")),
        "AIRFLOW__CORE__DAGS_FOLDER": str(ROOT / "dags"),
        "AIRFLOW__CORE__PLUGINS_FOLDER": str(ROOT / "plugins"),
        "AIRFLOW__DATABASE__SQL_ALCHEMY_CONNECT_ARGS": f"{connections}.CONNECT_ARGS",
        "AIRFLOW__DATABASE__SQL_ALCHEMY_CONNECT_ARGS_ASYNC": f"{connections}.CONNECT_ARGS_ASYNC",
        "SLUICE_WORKSPACE": str(folder / "workspace"),
        "PATH": os.environ["PATH"],
    }


def _is_healthy(airflow: RunningAirflow) -> bool:
    found = airflow.call("GET", "/api/v2/monitor/health")
    return all(found[name]["status"] == "healthy" for name in ("scheduler", "dag_processor", "triggerer"))


def _photograph(airflow: RunningAirflow, chromium: str) -> None:
    password = json.loads(airflow.passwords.read_text())["admin"]
    with sync_playwright() as tools:
        browser = tools.chromium.launch(executable_path=chromium)
        page = browser.new_page(viewport={"width": WIDTH, "height": 600})
        page.set_default_timeout(PATIENCE_MS)
        page.goto(f"{airflow.url}/sluice/")
        page.get_by_label("Username").fill("admin")
        page.get_by_label("Password").fill(password)
        page.locator("button[type=submit], input[type=submit]").first.click()
        page.wait_for_url("**/sluice/")
        page.screenshot(path=PICTURE, full_page=True)
        browser.close()


if __name__ == "__main__":
    main()
