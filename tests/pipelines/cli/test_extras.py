"""The extras of the package: what the base does without them, and the one sentence where one is missing."""

import json
import re
import subprocess
import sys
import tomllib
from collections.abc import Mapping
from importlib.metadata import packages_distributions, requires
from pathlib import Path
from typing import Any

import pytest

from pipelines.cli import EXIT_MISSING_EXTRA, extras
from pipelines.cli.commands import COMMANDS
from pipelines.cli.extras import EXTRAS, missing_extra

ABSENT = ",".join(module for modules in EXTRAS.values() for module in modules)
CHILD = """
import sys
for module in sys.argv[1].split(","):
    sys.modules[module] = None  # the import system then says that there is no such module
from pipelines.cli import run
sys.exit(run(sys.argv[2:]))
"""
ALL_HELP = """
import sys
for module in sys.argv[1].split(","):
    sys.modules[module] = None
from pipelines.cli import run
sys.exit(max(run([name, "--help"]) for name in sys.argv[2:]))
"""


def _run_base(folder: Path, *arguments: str, script: str = CHILD) -> subprocess.CompletedProcess[str]:
    """Run a command in a process that has the packages of the base alone."""
    command = [sys.executable, "-c", script, ABSENT, *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def project(root: Path) -> dict[str, Any]:
    return tomllib.loads((root / "pyproject.toml").read_text())["project"]


@pytest.fixture(scope="module")
def distributions() -> Mapping[str, list[str]]:
    """The installed distributions that bring a module, by module."""
    return packages_distributions()


@pytest.mark.parametrize("extra", sorted(EXTRAS))
def test_an_extra_brings_the_modules_that_its_table_names(
    extra: str, project: dict[str, Any], distributions: Mapping[str, list[str]]
) -> None:
    named = {_name(requirement) for requirement in project["optional-dependencies"][extra]} - {"sluice"}
    brought = named | {_name(line) for name in named for line in requires(name) or []}
    for module in EXTRAS[extra]:
        assert brought & {_name(found) for found in distributions[module]}, module


def test_no_module_of_an_extra_is_in_the_base(project: dict[str, Any], distributions: Mapping[str, list[str]]) -> None:
    base = {_name(requirement) for requirement in project["dependencies"]}
    for modules in EXTRAS.values():
        for module in modules:
            assert not base & {_name(found) for found in distributions[module]}, module


@pytest.mark.slow
def test_every_command_shows_its_help_without_extras(tmp_path: Path) -> None:
    done = _run_base(tmp_path, *COMMANDS, script=ALL_HELP)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.count("Usage: sluice") == len(COMMANDS)


EVALUATE = ("evaluate", "--job", "wordcount", "--workload", "steps", "--policy", "ds2")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "extra"),
    [
        (("plan", "nexmark-q1", "--rate", "1000"), "spark"),
        (("models", "list"), "mlflow"),
        ((*EVALUATE, "--log"), "mlflow"),
        ((*EVALUATE, "--spark"), "spark"),
        (("skew", "bids.parquet", "--key", "auction"), "spark"),
    ],
)
def test_a_missing_extra_is_one_sentence_with_the_command_that_installs_it(
    tmp_path: Path, arguments: tuple[str, ...], extra: str
) -> None:
    (tmp_path / "bids.parquet").touch()
    done = _run_base(tmp_path, *arguments)
    assert (done.returncode, done.stdout) == (EXIT_MISSING_EXTRA, "")
    assert done.stderr.startswith("not installed: this needs ") and done.stderr.count("\n") == 1
    assert f"pip install 'sluice[{extra}]'" in done.stderr
    workspace = tmp_path / ".sluice" / "workspace"
    assert not (workspace / "runs").exists() and not (workspace / "arena").exists(), "it is refused before it measures"


@pytest.mark.slow
def test_the_base_evaluates_policies_and_leaves_mlflow_out(tmp_path: Path) -> None:
    done = _run_base(tmp_path, *EVALUATE, "--minutes", "30", "--burn-in-minutes", "10", "--json")
    assert done.returncode == 0, done.stderr
    shown = json.loads(done.stdout)
    assert shown["mlflow_runs"] == {} and shown["rankings"][0]["winner"] == "ds2"
    assert (tmp_path / ".sluice" / "workspace" / "arena").is_dir()


def test_a_module_of_no_extra_is_not_explained_by_one() -> None:
    assert missing_extra(ModuleNotFoundError("No module named 'x'", name="x")) is None
    assert missing_extra(ModuleNotFoundError("without a name")) is None


def test_a_part_that_an_installed_package_lacks_is_not_explained_by_its_extra() -> None:
    assert extras.has("mlflow")
    assert missing_extra(ModuleNotFoundError("No module named 'mlflow.x'", name="mlflow.x")) is None


def _name(requirement: str) -> str:
    """The normalised name of a distribution in a requirement."""
    found = re.match(r"[A-Za-z0-9._-]+", requirement)
    assert found is not None
    return re.sub(r"[-_.]+", "-", found.group()).lower()
