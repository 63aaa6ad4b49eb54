"""What holds for every test: an Airflow home of its own, no inherited workspace, and how Hypothesis searches."""

import logging
import os
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings
from xdist.scheduler import LoadScopeScheduling

ROOT = Path(__file__).parents[1]
LONGEST = ("dags", "testbeds/flink", "pipelines", "deployment", "spark", "models/placement", "faults")
"""Folders by how long their tests take, the longest first."""

# No deadline: this is shared hardware, and a slow example is not a wrong one. CI repeats the same examples each time, so
# that a change that has nothing to do with a test cannot fail it; at a desk the search goes on.
settings.register_profile("ci", deadline=None, derandomize=True, print_blob=True)
settings.register_profile("desk", deadline=None)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "desk"))


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
os.environ.pop("SLUICE_WORKSPACE", None)
sys.path.insert(0, str(ROOT / "plugins"))
# It logs when the interpreter ends, after pytest has closed the stream that it would log to.
logging.getLogger("py4j").setLevel(logging.WARNING)


class OneProcessAFolder(LoadScopeScheduling):
    """Tests of a folder share its servers, so one process runs them all."""

    def _split_scope(self, nodeid: str) -> str:
        return nodeid.partition("::")[0].rpartition("/")[0]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The folders that take minutes come first, so that no process works them off while the others have nothing to do."""
    order = {ROOT / "tests" / folder: place for place, folder in enumerate(LONGEST)}
    items.sort(key=lambda item: order.get(item.path.parent, len(order)))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> OneProcessAFolder:
    """Of the processes that `-n` asks for."""
    return OneProcessAFolder(config, log)


@pytest.fixture(scope="session")
def root() -> Path:
    """Folder of the repository."""
    return ROOT


@pytest.fixture(scope="session")
def airflow_home() -> Path:
    """Home of an Airflow whose database is there, made once for all tests."""
    from airflow.utils import db

    db.initdb()
    return Path(_home.name)
