"""The repository itself: its packages come from here, its rooms are the documented ones, its commands exist."""

import ast
import importlib
import os
import re
import subprocess
from pathlib import Path

import pytest

PACKAGES = ("flink_client", "models", "pipelines", "spark", "testbeds")


@pytest.mark.parametrize("package", PACKAGES)
def test_each_package_is_imported_from_this_repository(root: Path, package: str) -> None:
    file = importlib.import_module(package).__file__
    assert file is not None
    assert Path(file).resolve() == (root / package / "__init__.py").resolve()


def test_dags_and_plugins_are_never_packaged(root: Path) -> None:
    for room in ("dags", "plugins"):
        assert not (root / room / "__init__.py").exists()
        assert not set(PACKAGES) & {path.name for path in (root / room).iterdir()}


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
    for page in _pages(root):
        for target, anchor in re.findall(r"\]\(([^)#\s]*)(?:#([^)]*))?\)", page.read_text()):
            if target.startswith(("http://", "https://")):
                continue
            linked = (page.parent / target).resolve() if target else page
            assert linked.exists(), f"{page.relative_to(root)} links to {target}"
            if anchor:
                assert anchor in _anchors(linked), f"{page.relative_to(root)} links to {target}#{anchor}"


def test_every_page_is_linked_from_the_index(root: Path) -> None:
    index = (root / "docs" / "index.md").read_text()
    pages = {str(page.relative_to(root / "docs")) for page in (root / "docs").rglob("*.md")} - {"index.md"}
    assert {page for page in pages if f"({page})" not in index} == set()


def test_paths_of_the_code_in_the_documentation_exist(root: Path) -> None:
    rooms = "benchmarks|clusters|dags|docker|flink_client|models|pipelines|plugins|spark|testbeds|tests"
    for page in _pages(root):
        for path in re.findall(rf"`((?:{rooms})/[\w./-]+)`", page.read_text()):
            assert (root / path).exists(), f"{page.relative_to(root)} names {path}"
        if page.parent.name == "benchmarks":
            for path in re.findall(r"`(\w[\w/]*(?:\.py|/))", page.read_text()):
                exists = (page.parent / path).exists() or (root / path).exists()
                assert exists, f"{page.relative_to(root)} names {path}"


def test_the_page_of_the_benchmarks_lists_every_script(root: Path) -> None:
    benchmarks = root / "benchmarks"
    rows = re.findall(r"^\| `([\w/]+)/` \| ([^|]*) \|", (benchmarks / "README.md").read_text(), re.MULTILINE)
    listed = {f"{room}/{name}.py" for room, names in rows for name in re.findall(r"`(\w+)`", names)}
    scripts = {path for path in benchmarks.rglob("*.py") if "\nif __name__ == " in path.read_text()}
    assert listed == {str(path.relative_to(benchmarks)) for path in scripts}


def _pages(root: Path) -> list[Path]:
    return [root / "README.md", *(root / "docs").rglob("*.md"), *(root / "benchmarks").glob("*.md")]


def _anchors(page: Path) -> set[str]:
    """Of the headings, as GitHub makes them."""
    headings = re.findall(r"^#+ (.*)$", page.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_a_class_name_means_one_thing(root: Path) -> None:
    defined: dict[str, list[str]] = {}
    for package in (*PACKAGES, "plugins"):
        for path in sorted((root / package).rglob("*.py")):
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if isinstance(node, ast.ClassDef):
                    defined.setdefault(node.name, []).append(str(path.relative_to(root)))
    assert {name: paths for name, paths in defined.items() if len(paths) > 1} == {}
