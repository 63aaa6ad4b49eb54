"""Set-up of all tests: an Airflow home of their own, no inherited workspace, and the settings of Hypothesis."""

import gc
import logging
import os
import re
import signal
import sys
import tempfile
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings
from xdist.scheduler import LoadScopeScheduling
from xdist.workermanage import WorkerController

ROOT = Path(__file__).parents[1]
LONGEST = (
    *("testbeds/flink", "pipelines/stages", "pipelines", "pipelines/cli/plans", "models/capacity/exploration"),
    *("dags", "testbeds/kafka", "deployment", "spark", "pipelines/observe", "pipelines/apply", "faults"),
)
"""Folders by how long their tests take, the longest first of each kind."""
IN_REAL_TIME = (
    "testbeds/flink",
    "testbeds/flink/local",
    "testbeds/kafka",
    "testbeds/kafka/feeding",
    "pipelines/apply",
    "pipelines/calibration",
    "pipelines/control/actions",
    "pipelines/keys",
    "pipelines/observe",
)
"""Folders whose slow tests measure rates, or times, of real programs."""
MEASURING = "gw0"
"""The process that runs the folders in real time."""
NICE = 5
"""Of the other processes, so that what is measured is disturbed little by them."""
SKIP_NOTHING = "SLUICE_TESTS_SKIP_NOTHING"
SLOW_FIXTURES = frozenset({"migrated_database", "airflow_home", "spark", "kit", "calibrated", "broker"})
"""Fixtures that start MLflow, Airflow, Spark, Kafka or a Java compiler, or run a pipeline; their tests are marked slow."""
MARK_OF_ALL = re.compile(r"^pytestmark = \[?pytest\.mark\.(slow|long)\b", re.MULTILINE)
"""In a file of which every test has the mark."""

# No deadline: a slow example on a busy machine is not a wrong one. Every run draws the same examples, so that a failure has
# a cause in the change being tested; `make fuzz` draws new ones.
settings.register_profile("same", deadline=None, derandomize=True, print_blob=True)
settings.register_profile("new", deadline=None, derandomize=False, print_blob=True)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "same"))


def _airflow_settings(home: str) -> dict[str, str]:
    lines = (ROOT / "docker" / "airflow.env").read_text().splitlines()
    shared = dict(line.split("=", 1) for line in lines if line and not line.startswith("#"))
    return shared | {
        "AIRFLOW_HOME": home,
        "AIRFLOW__CORE__DAGS_FOLDER": str(ROOT / "dags"),
        "AIRFLOW__CORE__PLUGINS_FOLDER": str(ROOT / "plugins"),
    }


# Airflow reads its settings when it is first imported, which may be while tests are collected.
_home = tempfile.TemporaryDirectory(prefix="sluice-airflow-")
os.environ.update(_airflow_settings(_home.name))
os.environ["XDG_STATE_HOME"] = _home.name  # what a killed test left is no concern of the user's next measurement
os.environ.pop("SLUICE_WORKSPACE", None)
sys.path.insert(0, str(ROOT / "plugins"))
# It logs when the interpreter ends, after pytest has closed the stream that it would log to.
logging.getLogger("py4j").setLevel(logging.WARNING)


class OneProcessAFolder(LoadScopeScheduling):
    """Tests of a folder share its servers, so one process runs them all.

    The folders in real time wait most of their time. One process runs them, one after another; the others run the rest
    meanwhile. A process takes of the other kind once nothing is left of its own.
    """

    def _split_scope(self, nodeid: str) -> str:
        return nodeid.partition("::")[0].rpartition("/")[0]

    def _assign_work_unit(self, node: WorkerController) -> None:
        measures = node.gateway.id == MEASURING
        own = (folder for folder in self.workqueue if (folder.removeprefix("tests/") in IN_REAL_TIME) == measures)
        if (folder := next(own, None)) is not None:
            self.workqueue.move_to_end(folder, last=False)
        super()._assign_work_unit(node)


def pytest_configure(config: pytest.Config) -> None:
    """Give the process that measures precedence over the others, and let what tests start be stopped by Ctrl-C: a shell
    that starts the tests in the background has it ignored, and so would they."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    if getattr(config, "workerinput", {"workerid": MEASURING})["workerid"] != MEASURING:
        os.nice(NICE)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Leave what is imported and collected to the end out of garbage collection, a tenth of the CPU of the quick tests."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()
        gc.freeze()


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Do not import files of which every test would be deselected: some import Airflow's server, MLflow or Spark, which
    takes seconds in each process."""
    if not collection_path.match("test_*.py"):
        return None
    mark = MARK_OF_ALL.search(collection_path.read_text(encoding="utf-8"))
    return True if mark and f"not {mark[1]}" in config.option.markexpr.split(" and ") else None


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark tests that use heavy fixtures as slow, and run the folders that take minutes first, so that all processes
    end at about the same time."""
    order = {ROOT / "tests" / folder: place for place, folder in enumerate(LONGEST)}
    real_time = {ROOT / "tests" / folder for folder in IN_REAL_TIME}
    items.sort(key=lambda item: order.get(item.path.parent, len(order)))
    for item in items:
        if SLOW_FIXTURES.intersection(getattr(item, "fixturenames", ())):
            item.add_marker(pytest.mark.slow)
        if item.get_closest_marker("slow") and item.path.parent in real_time:
            # What else the machine does may disturb a measurement, which is then made again, as testbeds do it.
            item.add_marker(pytest.mark.flaky(reruns=2))


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Where nothing may be skipped, as in CI, a test that was skipped for want of a program has failed."""
    report = yield
    if report.skipped and not hasattr(report, "wasxfail") and SKIP_NOTHING in os.environ:
        _, _, reason = report.longrepr if isinstance(report.longrepr, tuple) else ("", 0, report.longreprtext)
        report.outcome, report.longrepr = "failed", f"{reason} ({SKIP_NOTHING} is set)"
    return report


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> OneProcessAFolder:
    """The scheduler of the processes of `-n`."""
    return OneProcessAFolder(config, log)


@pytest.fixture(scope="session")
def root() -> Path:
    """Folder of the repository."""
    return ROOT


@pytest.fixture(scope="session")
def airflow_home() -> Path:
    """Home of an Airflow with an initialised database, made once for all tests."""
    from airflow.utils import db

    db.initdb()
    return Path(_home.name)
