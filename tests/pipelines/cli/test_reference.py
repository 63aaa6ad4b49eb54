"""The generated reference pages are current, and hold every command, policy, format and environment variable."""

import re
from pathlib import Path

import pytest

from models.scaling.policies import POLICIES
from pipelines.cli.commands import MODULES
from pipelines.cli.reference import FOLDER, PAGES
from pipelines.schemas import FORMATS

MEND = "run `python -m pipelines.cli.reference` and commit what it writes"


@pytest.mark.parametrize("page", PAGES)
def test_the_committed_page_is_what_the_code_says(root: Path, page: str) -> None:
    assert (root / "docs" / FOLDER / page).read_text() == PAGES[page](), MEND


def test_no_other_page_lies_there(root: Path) -> None:
    assert {path.name for path in (root / "docs" / FOLDER).iterdir()} == set(PAGES)


def test_every_command_policy_and_format_has_its_place(root: Path) -> None:
    commands, policies, formats = ((root / "docs" / FOLDER / page).read_text() for page in PAGES)
    for name in (name for names in MODULES.values() for name in names):
        assert re.search(rf"^## sluice {name}\b", commands, re.MULTILINE), name
    assert set(re.findall(r"^## (.+)$", policies, re.MULTILINE)) == set(POLICIES)
    assert set(re.findall(r"^## (.+)$", formats, re.MULTILINE)) == set(FORMATS)


def test_every_environment_variable_of_ours_is_in_the_operations_guide(root: Path) -> None:
    rooms = ("models", "pipelines", "spark", "testbeds", "plugins", "dags")
    named = {
        name
        for room in rooms
        for path in (root / room).rglob("*.py")
        for name in re.findall(r"\bSLUICE_[A-Z_]+\b", path.read_text())
    }
    guide = (root / "docs" / "operations.md").read_text()
    assert {name for name in named if f"| `{name}` |" not in guide} == set()
