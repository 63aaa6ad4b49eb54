"""Take the pictures of the plan pages and of the report again: docs/images/pages-jobs.png, pages-plan.png and report.png.

    PYTHONPATH=plugins:tests/support python tests/support/workspaces/retake_pictures.py

Plans three jobs in a temporary workspace, one of them twice, rolls one back, starts the Airflow of `make airflow` on free
ports, waits until its components are healthy, and photographs its pages with headless Chromium, unedited; then the report of
the plan that the README shows, from a second workspace. It takes some minutes.
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
from pipelines.store.plans import PlanStore, report_key
from pipelines.store.workspace import Workspace
from servers.airflow import RunningAirflow

ROOT = Path(__file__).parents[3]
IMAGES = ROOT / "docs" / "images"
WIDTH, REPORT_WIDTH = 1280, 930
HEIGHT, REPORT_HEIGHT = 900, 1530
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
        _photograph_report(Workspace(folder / "of-report"), chromium)
    print(f"wrote pages-jobs.png, pages-plan.png and report.png in {IMAGES.relative_to(ROOT)}")


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
        page.screenshot(path=IMAGES / "pages-jobs.png", full_page=True)
        page.set_viewport_size({"width": WIDTH, "height": HEIGHT})
        page.goto(f"{airflow.url}/plugin/sluice-plans")
        frame = page.frame_locator("iframe[title='Sluice plans']")
        frame.get_by_role("row").filter(has_text="nexmark-q1 ").get_by_role("link", name="version 2").click()
        frame.locator("[data-pictures][data-drawn=yes]").wait_for()
        page.screenshot(path=IMAGES / "pages-plan.png")
        browser.close()


def _photograph_report(workspace: Workspace, chromium: str) -> None:
    run_all(PipelineRun(PlanRequest(job="nexmark-q5", rate=2_500_000.0), workspace))
    with sync_playwright() as tools:
        browser = tools.chromium.launch(executable_path=chromium)
        page = browser.new_page(viewport={"width": REPORT_WIDTH, "height": REPORT_HEIGHT})
        page.goto(workspace.uri(report_key("nexmark-q5", 1)))
        page.screenshot(path=IMAGES / "report.png")
        browser.close()


if __name__ == "__main__":
    main()
