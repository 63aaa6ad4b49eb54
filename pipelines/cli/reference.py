"""The reference pages of the documentation that are made from the code: commands, policies' settings, file formats.

`python -m pipelines.cli.reference [DOCS]` writes them into `DOCS/reference`; a test holds that they are current.
"""

import json
import sys
from collections.abc import Iterator
from enum import Enum
from pathlib import Path
from typing import Any, Final

from typer.main import get_command

from models.scaling.policies import POLICIES
from pipelines.cli import app
from pipelines.cli.commands import register
from pipelines.schemas import FORMATS, table_of

FOLDER: Final = "reference"
NOTE: Final = "This page is made from the code by `python -m pipelines.cli.reference`.\n"
EXIT_CODES: Final = "Exit codes: 0 done, 1 failed, 2 unusable arguments or input, 3 no feasible answer.\n"
_VALUES: Final[dict[Any, str]] = {int: "INTEGER", float: "NUMBER", Path: "FILE"}


def commands_page() -> str:
    """Every command with its arguments and options."""
    register([])
    lines = ["# Commands\n", NOTE, EXIT_CODES]
    for path, command in _commands(get_command(app), "sluice"):
        lines += [f"## {path}\n", f"{_paragraphs(command.help)}\n", *_parameters(command)]
    return "\n".join(lines)


def _commands(command: Any, path: str) -> Iterator[tuple[str, Any]]:
    inner = getattr(command, "commands", None)
    if inner is None:
        yield path, command
        return
    for name in sorted(inner):
        yield from _commands(inner[name], f"{path} {name}")


def _parameters(command: Any) -> Iterator[str]:
    rows = [_row(parameter) for parameter in command.params if not getattr(parameter, "hidden", False)]
    if rows:
        yield "| argument or option | default | meaning |\n|---|---|---|\n" + "\n".join(rows) + "\n"


def _row(parameter: Any) -> str:
    is_option = parameter.param_type_name == "option"
    name = ", ".join([*parameter.opts, *parameter.secondary_opts]) if is_option else parameter.metavar or parameter.name
    if is_option and not parameter.is_flag:
        name += f" {parameter.metavar or _value_of(parameter.type_descriptor.annotation)}"
    default = "required" if parameter.required else _default(parameter.default)
    return f"| `{_cell(name if is_option else name.upper())}` | {default} | {_cell(getattr(parameter, 'help', None) or '')} |"


def _value_of(annotation: Any) -> str:
    """What an option's value is called, if it has no name of its own."""
    if isinstance(annotation, type) and issubclass(annotation, Enum):
        return "|".join(str(one.value) for one in annotation)
    return _VALUES.get(annotation, "TEXT")


def _default(value: Any) -> str:
    shown = getattr(value, "value", value)
    return "" if shown in (None, False) or shown == [] else f"`{shown}`"


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


def _paragraphs(text: str | None) -> str:
    return "\n\n".join(" ".join(part.split()) for part in (text or "").split("\n\n"))


def policies_page() -> str:
    """Every scaling policy with its settings, as `--set` takes them."""
    lines = ["# Scaling policies and their settings\n", NOTE]
    for name, kind in sorted(POLICIES.items()):
        lines += [f"## {name}\n", f"{kind.title}.\n"]
        lines.append(table_of(kind.settings) if kind.setting_names else "It has no settings.\n")
    return "\n".join(lines)


def formats_page() -> str:
    """Every file format with its fields; types and bounds are in its JSON Schema."""
    lines = ["# File formats\n", NOTE]
    for name, model in sorted(FORMATS.items()):
        summary = _paragraphs((model.__doc__ or "").split("\n\n")[0])
        lines += [f"## {name}\n", f"{summary} JSON Schema: [{name}.json](../schemas/{name}.json)\n"]
        schema = model.model_json_schema(by_alias=True)
        required = set(schema.get("required", []))
        rows = [
            f"| `{field}` | {'required' if field in required else ''} | {_cell(rule.get('description', ''))} |"
            for field, rule in schema["properties"].items()
        ]
        lines.append("| field | | meaning |\n|---|---|---|\n" + "\n".join(rows) + "\n")
    return "\n".join(lines)


PAGES: Final = {"commands.md": commands_page, "policies.md": policies_page, "formats.md": formats_page}


def write(docs: Path) -> list[Path]:
    """Write all pages; returns those that changed."""
    folder = docs / FOLDER
    folder.mkdir(parents=True, exist_ok=True)
    changed = []
    for name, make in PAGES.items():
        path, text = folder / name, make()
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")
            changed.append(path)
    return changed


if __name__ == "__main__":
    written = write(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parents[2] / "docs")
    print(json.dumps([str(path) for path in written]))
