"""What is said of an option whose value does not serve: what must hold, and what came."""

from collections.abc import Mapping
from typing import Any

import typer
from pydantic import ValidationError


def explain(error: typer.BadParameter) -> None:
    """Replace Typer's message, which leaves out what came."""
    if isinstance(error.__cause__, ValidationError):
        first = error.__cause__.errors()[0]
        needed = _needed(first)
        error.message = f"it must be {needed}, but got {first['input']!r}" if needed else str(first["ctx"]["error"])


def _needed(error: Mapping[str, Any]) -> str | None:
    """What must hold; None where the error says both itself."""
    limits = error.get("ctx", {})
    match error["type"]:
        case "value_error":
            return None
        case "greater_than_equal":
            return f"{limits['ge']:,.15g} or more"
        case "less_than_equal":
            return f"{limits['le']:,.15g} or less"
        case "int_parsing" | "int_from_float":
            return "a whole number"
        case "float_parsing":
            return "a number"
        case "enum" | "literal_error":
            return f"one of {limits['expected']}"
        case _:
            return f"valid ({error['msg']})"
