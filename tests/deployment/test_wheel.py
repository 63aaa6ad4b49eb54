"""The wheel: it holds all that its commands read, and runs where there is no checkout."""

import json
import os
import shutil
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

import pytest

PACKAGES = ("flink_client", "models", "pipelines", "plugins/sluice_airflow", "spark", "testbeds")
CATALOGUE = ("clusters", "jobs")

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def sources(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of what is packaged: a build leaves files beside its sources."""
    folder = tmp_path_factory.mktemp("sources")
    for name in (*PACKAGES, *CATALOGUE):
        shutil.copytree(root / name, folder / name, ignore=shutil.ignore_patterns("__pycache__", "target"))
    for name in ("LICENSE", "README.md", "pyproject.toml"):
        shutil.copy(root / name, folder / name)
    return folder


@pytest.fixture(scope="module")
def wheel(sources: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    _pip("wheel", "--no-deps", "--no-build-isolation", "--wheel-dir", str(folder), str(sources))
    [built] = folder.iterdir()
    return built


@pytest.fixture(scope="module")
def environment(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment with the wheel, which borrows the packages of this one, but not its checkout of Sluice."""
    folder = tmp_path_factory.mktemp("environment") / "env"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)
    python = folder / "bin" / "python"
    _pip("--python", str(python), "install", "--no-deps", "--ignore-installed", str(wheel))
    site = sysconfig.get_path("purelib", vars={"base": str(folder)})
    # The path alone: .pth files in a folder that is added so, such as that of an editable install, are not read.
    (Path(site) / "borrowed.pth").write_text(sysconfig.get_path("purelib") + "\n")
    return folder


def _pip(*arguments: str) -> None:
    command = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--no-input", "--quiet"]
    subprocess.run([*command, *arguments], check=True, env={**_environment(), "PIP_NO_INDEX": "1"})


def _environment() -> dict[str, str]:
    """This process's environment without the paths and settings of the checkout."""
    return {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "SLUICE_"))}


def _run(environment: Path, folder: Path, *command: str) -> str:
    """Run a program of the environment in a folder, without this checkout on the path; returns what it printed."""
    program = [str(environment / "bin" / command[0]), *command[1:]]
    return subprocess.run(program, cwd=folder, env=_environment(), stdout=subprocess.PIPE, text=True, check=True).stdout


def test_it_holds_every_file_of_the_packages_and_the_catalogue(sources: Path, wheel: Path) -> None:
    held = set(zipfile.ZipFile(wheel).namelist())
    for package in PACKAGES:
        of_package = [path for path in (sources / package).rglob("*") if path.is_file()]
        there = {str(path.relative_to((sources / package).parent)) for path in of_package}
        assert there <= held, sorted(there - held)
    for kind in CATALOGUE:
        assert {path.name for path in (sources / kind).iterdir()} <= {Path(name).name for name in held if kind in name}


def test_it_holds_neither_tests_nor_dags(wheel: Path) -> None:
    top = {name.partition("/")[0] for name in zipfile.ZipFile(wheel).namelist()}
    packages = {package.rpartition("/")[2] for package in PACKAGES}
    assert {name for name in top if not name.startswith("sluice-")} == packages


def test_its_metadata_names_each_extra_and_the_pythons(environment: Path, tmp_path: Path) -> None:
    script = """
import json
from importlib.metadata import metadata
found = metadata("sluice")
print(json.dumps([found.get_all("Provides-Extra"), found["Requires-Python"], found["License-Expression"]]))
"""
    extras, pythons, licence = json.loads(_run(environment, tmp_path, "python", "-c", script))
    assert set(extras) == {"airflow", "all", "deployment", "flink", "kubernetes", "lineage", "mlflow", "spark"}
    assert set(pythons.split(",")) == {">=3.11", "<3.14"}
    assert licence == "Apache-2.0"


def test_the_command_runs_outside_the_checkout(environment: Path, tmp_path: Path) -> None:
    where = _run(environment, tmp_path, "python", "-c", "import pipelines; print(pipelines.__file__)")
    assert Path(where.strip()).is_relative_to(environment), "the checkout was imported"
    assert _run(environment, tmp_path, "sluice", "--version").startswith("sluice ")
    jobs = json.loads(_run(environment, tmp_path, "sluice", "jobs", "list", "--json"))["jobs"]
    assert {"nexmark-q5", "wordcount"} <= {job["name"] for job in jobs}


@pytest.mark.long  # all kernels of the simulator are compiled again
def test_the_simulator_and_the_report_run_outside_the_checkout(environment: Path, tmp_path: Path) -> None:
    arguments = ["--job", "wordcount", "--workload", "steps", "--policy", "ds2", "--minutes", "30"]
    options = ["--burn-in-minutes", "10", "--no-log", "--report", "page.html", "--json"]
    shown = json.loads(_run(environment, tmp_path, "sluice", "evaluate", *arguments, *options))
    assert shown["rankings"][0]["winner"] == "ds2"
    assert "<html" in (tmp_path / "page.html").read_text()
