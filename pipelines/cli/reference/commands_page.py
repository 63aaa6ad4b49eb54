"""The reference page of all commands, generated from their arguments and options."""

from collections.abc import Iterator
from enum import Enum
from pathlib import Path
from typing import Any, Final

from pipelines.cli.commands import COMMANDS, load_command
from pipelines.cli.reference.fields import NOTE, cell, paragraphs

EXIT_CODES: Final = (
    "Exit codes: 0 done, 1 failed, 2 unusable arguments or input, 3 no feasible answer, 4 packages of an\n"
    "[extra](../how-to/install.md) are not installed, 130 stopped by Ctrl-C, 143 by SIGTERM.\n"
)
_VALUES: Final[dict[Any, str]] = {int: "INTEGER", float: "NUMBER", Path: "FILE"}


def commands_page() -> str:
    """Every command with its arguments and options."""
    lines = ["# Commands\n", NOTE, EXIT_CODES]
    entries = (entry for name in sorted(COMMANDS) for entry in _commands(load_command(name), f"sluice {name}"))
    for path, command in entries:
        lines += [f"## {path}\n", f"{paragraphs(command.help)}\n", *_parameters(command)]
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
    meaning = (getattr(parameter, "help", None) or "") + _range(parameter)
    return f"| `{cell(name if is_option else name.upper())}` | {default} | {cell(meaning)} |"


def _range(parameter: Any) -> str:
    """The least and the greatest number that an option takes, as `--help` states them."""
    low, high = (_number(getattr(parameter, name, None)) for name in ("min", "max"))
    if low and high:
        return f" {low} to {high}."
    return f" At least {low}." if low else f" At most {high}." if high else ""


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:,.0f}" if value == int(value) else f"{value:g}"


def _value_of(annotation: Any) -> str:
    """The placeholder of an option's value, if it has no name of its own."""
    if isinstance(annotation, type) and issubclass(annotation, Enum):
        return "|".join(str(one.value) for one in annotation)
    return _VALUES.get(annotation, "TEXT")


def _default(value: Any) -> str:
    shown = getattr(value, "value", value)
    return "" if shown in (None, False) or shown == [] else f"`{shown}`"
