"""The repository itself: its packages come from here, its rooms are the documented ones, its commands exist."""

import importlib
import os
import re
import subprocess
from pathlib import Path

import pytest


@pytest.mark.parametrize("package", ["models", "pipelines", "spark", "testbeds"])
def test_each_package_is_imported_from_this_repository(root: Path, package: str) -> None:
    file = importlib.import_module(package).__file__
    assert file is not None
    assert Path(file).resolve() == (root / package / "__init__.py").resolve()


def test_dags_and_plugins_are_never_packaged(root: Path) -> None:
    for room in ("dags", "plugins"):
        assert not (root / room / "__init__.py").exists()
        assert not {"models", "pipelines", "spark", "testbeds"} & {path.name for path in (root / room).iterdir()}


def test_the_license_is_apache_2(root: Path) -> None:
    text = (root / "LICENSE").read_text()
    assert "Apache License" in text and "Version 2.0, January 2004" in text
    assert 'license = "Apache-2.0"' in (root / "pyproject.toml").read_text()


def test_what_a_run_leaves_is_ignored_by_git(root: Path) -> None:
    left = [".env", ".venv/x", ".bootstrap/x", ".sluice/airflow/jwt-secret", ".sluice/workspace/plans/q/v000001.json"]
    ignored = subprocess.run(["git", "check-ignore", *left], cwd=root, capture_output=True, text=True).stdout
    assert ignored.split() == left


def test_make_explains_each_of_its_targets(root: Path) -> None:
    text = (root / "Makefile").read_text()
    phony = set(re.search(r"^\.PHONY: (.*)$", text, re.MULTILINE).group(1).split())
    shown = subprocess.run(
        ["make", "--no-print-directory", "help"], cwd=root, capture_output=True, text=True, check=True
    ).stdout
    assert {line.split()[0] for line in shown.splitlines()} == phony
    assert {"setup", "plan", "test", "lint", "clean"} <= phony


def test_ci_calls_the_test_command_of_the_readme(root: Path) -> None:
    assert "make test" in (root / ".ci" / "run").read_text()
    assert os.access(root / ".ci" / "run", os.X_OK)
    readme = (root / "README.md").read_text()
    assert "make plan" in readme and "make test" in readme


def test_links_in_the_documentation_lead_somewhere(root: Path) -> None:
    for page in [root / "README.md", *(root / "docs").rglob("*.md")]:
        for target in re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", page.read_text()):
            if not target.startswith(("http://", "https://")):
                assert (page.parent / target).exists(), f"{page.relative_to(root)} links to {target}"
