"""How commands print: one JSON document, or tables for people."""

import json
import sys
from typing import Any

from pydantic import BaseModel

from pipelines.terminal.tables import UncroppedConsole

console = UncroppedConsole(highlight=False)
"""Standard output, for tables."""
progress_console = UncroppedConsole(stderr=True, highlight=False)
"""Standard error, for progress and remarks, so that standard output stays clean."""


def print_json(document: BaseModel | dict[str, Any] | list[Any]) -> None:
    """Write one JSON document to standard output. NaN and infinity are refused, since JSON has neither."""
    data = document.model_dump(mode="json", by_alias=True) if isinstance(document, BaseModel) else document
    json.dump(data, sys.stdout, indent=2, allow_nan=False)
    sys.stdout.write("\n")


def print_json_line(document: BaseModel) -> None:
    """Write one JSON document on a line of its own, at once, for commands that print one after the other."""
    sys.stdout.write(document.model_dump_json(by_alias=True) + "\n")
    sys.stdout.flush()
