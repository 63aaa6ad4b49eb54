"""The generated reference pages: commands, scaling policies, file formats, metrics."""

from pathlib import Path
from typing import Any, Final

from models.metrics import FEATURE_COLUMNS, FEATURE_EVIDENCE, SAMPLE_COLUMNS, SAMPLE_EVIDENCE, Column
from models.scaling.policies import POLICIES
from pipelines.cli.reference.commands_page import commands_page
from pipelines.cli.reference.fields import NOTE, fields_table, paragraphs
from pipelines.cli.reference.schemas import FORMATS, schema_of, schema_text

FOLDER: Final = "reference"
_METRICS: Final = """`models/metrics.py` specifies both tables; the Arrow and Spark schemas and the checks are made from it.

A **sample** is one task over one reporting interval (5 s). `job` and `run` are only in the path (Hive layout). The key is
`run`, `operator`, `task` and `time_s`. Only sources have a lag.

A row of **features** is one operator in one measurement run, over the samples of the phases `profile` and `observe`. A
value that cannot be known is null, never NaN, 0 or -1. Rates are taken per task and then summed, as in DS2; if one task
had no useful time, its true rate and the sum are null."""


def policies_page() -> str:
    """Every scaling policy with its settings, as `--set` takes them."""
    lines = ["# Scaling policies and their settings\n", NOTE]
    for name, kind in sorted(POLICIES.items()):
        values = ", ".join(f"{value:g}" for value in kind.knob.values)
        lines += [f"## {name}\n", f"{kind.title}. A sweep sets `{kind.knob.setting}` to {values}.\n"]
        schema = kind.settings.model_json_schema(by_alias=True)
        lines.append(fields_table(schema, schema.get("$defs", {})) if kind.setting_names else "It has no settings.\n")
    return "\n".join(lines)


def formats_page() -> str:
    """Every file format with its fields, and then the parts that they share."""
    lines = ["# File formats\n", NOTE]
    lines.append("YAML and JSON are both read. A field that is not listed is refused.\n")
    own = {model.__name__: name for name, model in FORMATS.items()}
    parts: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {}
    for name, model in sorted(FORMATS.items()):
        schema = schema_of(name)
        inner = schema.get("$defs", {})
        parts |= {key: (part, inner) for key, part in inner.items() if key not in own and "properties" in part}
        link = f"JSON Schema: [{name}.json](../schemas/{name}.json)"
        lines += [f"## {name}\n", f"{_summary(model.__doc__)} {link}\n", fields_table(schema, inner, own)]
    lines.append("## Parts of formats\n")
    for key, (part, inner) in sorted(parts.items()):
        lines += [f"### {key}\n", f"{_summary(part.get('description'))}\n", fields_table(part, inner, own)]
    return "\n".join(line for line in lines if line.strip())


def _summary(docstring: str | None) -> str:
    return paragraphs((docstring or "").split("\n\n")[0])


def metrics_page() -> str:
    """The columns of samples and features, and the values that the checks derive from them."""
    lines = ["# Metrics: samples and features\n", NOTE, f"{_METRICS}\n"]
    for title, columns in (
        ("Samples", SAMPLE_COLUMNS),
        ("Features", FEATURE_COLUMNS),
        ("What the checks derive from samples", SAMPLE_EVIDENCE),
        ("What the checks derive from features", FEATURE_EVIDENCE),
    ):
        rows = [
            f"| `{c.name}` | {c.type.value}{' or null' if c.nullable else ''} | {c.unit} | {_allowed(c)} | {c.description} |"
            for c in columns
        ]
        head = "| column | type | unit | allowed | meaning |\n|---|---|---|---|---|\n"
        lines += [f"## {title}\n", head + "\n".join(rows) + "\n"]
    return "\n".join(lines)


def _allowed(column: Column) -> str:
    if column.values:
        return ", ".join(column.values)
    if column.minimum is None:
        return ""
    return f"≥ {column.minimum:g}" if column.maximum is None else f"{column.minimum:g} – {column.maximum:g}"


PAGES: Final = {
    "commands.md": commands_page,
    "policies.md": policies_page,
    "formats.md": formats_page,
    "metrics.md": metrics_page,
}


def write(docs: Path) -> list[Path]:
    """Write all pages and schemas; returns the files that changed."""
    texts = {docs / FOLDER / name: make() for name, make in PAGES.items()}
    texts |= {docs / "schemas" / f"{name}.json": schema_text(name) for name in FORMATS}
    changed = [path for path, text in texts.items() if not path.exists() or path.read_text(encoding="utf-8") != text]
    for path in changed:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(texts[path], encoding="utf-8")
    return changed
