"""The tables in docs/data.md are those of the column specification."""

import re
from pathlib import Path

import pytest

from models.metrics import FEATURE_COLUMNS, FEATURE_EVIDENCE, SAMPLE_COLUMNS, SAMPLE_EVIDENCE, Column

TABLES = {
    "samples": SAMPLE_COLUMNS,
    "sample evidence": SAMPLE_EVIDENCE,
    "features": FEATURE_COLUMNS,
    "feature evidence": FEATURE_EVIDENCE,
}


def as_table(columns: tuple[Column, ...]) -> str:
    rows = [
        f"| `{c.name}` | {c.type.value}{' or null' if c.nullable else ''} | {c.unit} | {allowed(c)} | {c.description} |"
        for c in columns
    ]
    return "\n".join(["| column | type | unit | allowed | meaning |", "|---|---|---|---|---|", *rows])


def allowed(column: Column) -> str:
    if column.values:
        return ", ".join(column.values)
    if column.minimum is None:
        return ""
    return f"≥ {column.minimum:g}" if column.maximum is None else f"{column.minimum:g} – {column.maximum:g}"


@pytest.mark.parametrize("name", TABLES)
def test_the_page_holds_the_table_of_the_specification(root: Path, name: str) -> None:
    page = (root / "docs" / "data.md").read_text(encoding="utf-8")
    found = re.search(rf"<!-- {name} -->\n(.*?)\n<!-- end -->", page, re.DOTALL)
    assert found is not None, f"docs/data.md has no table marked {name!r}"
    assert found.group(1) == as_table(TABLES[name]), "put this table there:\n" + as_table(TABLES[name])
