"""The check of licences: it passes as `make lint` runs it, and refuses what is not allowed."""

import subprocess
import tomllib
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.slow


@pytest.fixture
def settings(root: Path) -> dict[str, Any]:
    return tomllib.loads((root / "pyproject.toml").read_text())["tool"]["pip-licenses"]


def _check(root: Path, *options: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["pip-licenses", *options], cwd=root, capture_output=True, text=True, check=False)


def test_all_installed_packages_are_under_allowed_licences(root: Path) -> None:
    done = _check(root)
    assert done.returncode == 0, done.stderr


def test_each_exception_is_refused_without_its_entry(root: Path, settings: dict[str, Any]) -> None:
    for exception in settings["ignore-packages"]:
        name = exception.partition(":")[0]
        done = _check(root, "--ignore-packages=", "--packages", name)
        assert done.returncode == 1, f"{name} needs no exception, or is not installed"
        assert f"for package {name}" in done.stderr


def test_an_exception_holds_for_one_version(settings: dict[str, Any]) -> None:
    assert all(":" in exception for exception in settings["ignore-packages"])


def test_no_copyleft_licence_is_allowed_but_that_of_mozilla(settings: dict[str, Any]) -> None:
    allowed = {name.strip() for name in settings["allow-only"].replace("\n", " ").split(";")}
    assert {"MIT", "Apache-2.0"} <= allowed
    assert not [name for name in allowed if "GPL" in name or "General Public" in name]
