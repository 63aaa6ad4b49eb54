"""The table of settings in the documentation is that of the policy."""

from pathlib import Path

from models.scaling.sluice import SluiceSettings

PAGE = Path(__file__).parents[4] / "docs" / "scaling.md"


def test_the_documentation_lists_every_setting_with_its_default() -> None:
    section = PAGE.read_text().split("\n## `sluice`")[1].split("\n## ")[0]
    rows = [[cell.strip() for cell in line.split("|")[1:3]] for line in section.splitlines() if line.startswith("| `")]
    expected = []
    for name, field in SluiceSettings.model_fields.items():
        default = "none" if field.default in (None, ()) else f"{field.default:g}"
        expected.append([f"`{name}`", default])
    assert rows == expected
