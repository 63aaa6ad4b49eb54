"""The generated reference pages are current, and hold every command, policy, format and environment variable."""

import re
from pathlib import Path

import pytest

from models.scaling.policies import POLICIES
from pipelines.cli.commands import COMMANDS, load_command
from pipelines.cli.reference.fields import NOTE
from pipelines.cli.reference.pages import FOLDER, PAGES, write
from pipelines.cli.reference.schemas import FORMATS
from pipelines.inputs.plan_request import PlanRequest

SELF_EXPLANATORY = {
    *("schema_version", "name", "operators", "edges", "task_slots", "testbed", "model"),
    *("flink", "state", "noise", "rescaling"),
}
HINT = "run `python -m pipelines.cli.reference` and commit what it writes"


@pytest.mark.parametrize("page", PAGES)
def test_the_committed_page_is_what_the_code_says(root: Path, page: str) -> None:
    assert (root / "docs" / FOLDER / page).read_text() == PAGES[page](), HINT


def test_the_range_of_each_number_of_a_request_is_in_the_help_and_on_the_page(root: Path) -> None:
    page, plan = PAGES["commands.md"](), load_command("plan")
    section = page.partition("## sluice plan\n")[2].partition("\n## ")[0]
    helped = " ".join(plan.get_help(plan.context_class(plan, info_name="plan", terminal_width=200)).split())
    assert "Most measurements after the four corners. [default: 20; 3<=x<=20]" in helped
    assert "| Most measurements after the four corners. 3 to 20. |" in section
    for name, field in PlanRequest.model_json_schema()["properties"].items():
        for schema in (field, *field.get("anyOf", ())):
            if "maximum" in schema and schema.get("type") in ("integer", "number") and name != "schema_version":
                (row,) = (line for line in section.splitlines() if f"`--{name.replace('_', '-')}" in line)
                low = schema.get("minimum", schema.get("exclusiveMinimum"))
                assert re.search(rf" {low:,.0f} to {re.escape(_grouped(schema['maximum']))}\. \|$", row), row


def _grouped(value: float) -> str:
    return f"{value:,.0f}" if value == int(value) else f"{value:g}"


def test_only_what_changed_is_written(tmp_path: Path) -> None:
    assert len(write(tmp_path)) == len(FORMATS) + len(PAGES)
    assert write(tmp_path) == []


def test_every_generated_page_says_so(root: Path) -> None:
    generated = {path.name for path in (root / "docs" / FOLDER).iterdir() if NOTE in path.read_text()}
    assert generated == set(PAGES)


def test_every_command_policy_and_format_has_its_place(root: Path) -> None:
    commands, policies, formats, _ = ((root / "docs" / FOLDER / page).read_text() for page in PAGES)
    for name in COMMANDS:
        assert re.search(rf"^## sluice {name}\b", commands, re.MULTILINE), name
    assert set(re.findall(r"^## (.+)$", policies, re.MULTILINE)) == set(POLICIES)
    assert set(re.findall(r"^## (.+)$", formats, re.MULTILINE)) == {*FORMATS, "Parts of formats"}


def test_every_environment_variable_of_sluice_has_a_row(root: Path) -> None:
    rooms = ("models", "pipelines", "spark", "testbeds", "plugins", "dags")
    named = {
        name
        for room in rooms
        for path in (root / room).rglob("*.py")
        for name in re.findall(r"\bSLUICE_[A-Z_]+\b", path.read_text())
    }
    guide = (root / "docs" / "reference" / "environment.md").read_text()
    assert {name for name in named if f"| `{name}` |" not in guide} == set()


def test_every_field_of_a_format_has_a_type_and_a_description(root: Path) -> None:
    page = (root / "docs" / FOLDER / "formats.md").read_text()
    rows = [[cell.strip() for cell in line.split(" | ")] for line in page.splitlines() if line.startswith("| `")]
    assert len(rows) > 150
    assert [row for row in rows if not row[1]] == []
    assert {row[0].strip("| `") for row in rows if not row[-1].strip(" |")} <= SELF_EXPLANATORY


def test_the_settings_of_a_policy_have_their_public_names(root: Path) -> None:
    page = (root / "docs" / FOLDER / "policies.md").read_text()
    for name, kind in POLICIES.items():
        section = page.partition(f"## {name}\n")[2].partition("\n## ")[0]
        assert re.findall(r"^\| `([\w.-]+)` \|", section, re.MULTILINE) == list(kind.setting_names)


def test_the_guides_use_commands_and_options_that_exist(root: Path) -> None:
    """Every `sluice COMMAND --option` of the guides stands in the reference of commands."""
    page = (root / "docs" / FOLDER / "commands.md").read_text()
    sections = {part.split("\n")[0]: part for part in re.split(r"^## ", page, flags=re.MULTILINE)[1:]}
    guides = [root / "README.md", *(root / "docs").glob("[the]*/*.md")]
    used = [use for guide in guides for use in _uses(guide.read_text())]
    assert len(used) > 40
    assert {name for name, _ in used} <= set(sections)
    known = {name: set(re.findall(r"--[a-z-]+", section)) for name, section in sections.items()}
    assert {(name, option) for name, options in used for option in options if option not in known[name]} == set()


def _uses(text: str) -> list[tuple[str, list[str]]]:
    groups = "plans|models|jobs|clusters|autopilot"
    text = re.sub(r"sluice autopilot(?! (?:all|log|metrics|run|start|stop)\b)", "sluice autopilot run", text)
    found = re.findall(rf"sluice ((?:{groups}) [a-z]+|(?!{groups})[a-z]+)([^\n`|#]*)", text.replace("\\\n", " "))
    return [(f"sluice {command}", re.findall(r"(?<=\s)--[a-z-]+", rest)) for command, rest in found]
