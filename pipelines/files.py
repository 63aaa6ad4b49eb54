"""Reading what users write: YAML and JSON, validated once, with errors that name the field, the value and the fix."""

import csv
import json
from pathlib import Path
from typing import Any, TypeVar

import yaml
from pydantic import BaseModel, ValidationError

from models.errors import InvalidInput

Model = TypeVar("Model", bound=BaseModel)
MOST_ERRORS_SHOWN = 5


def read_text(path: Path) -> str:
    """The text of a file.

    Raises:
        InvalidInput: it is missing, is a folder, cannot be read, or is not UTF-8.
    """
    try:
        return path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise InvalidInput(f"the file {path} does not exist; check the path") from None
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidInput(f"the file {path} cannot be read as UTF-8 text: {error}") from None


def read_document(path: Path) -> Any:
    """Parse a YAML or JSON file (`.json` strictly as JSON).

    Raises:
        InvalidInput: it cannot be read or parsed.
    """
    text = read_text(path)
    try:
        return json.loads(text) if path.suffix == ".json" else yaml.safe_load(text)
    except (json.JSONDecodeError, yaml.YAMLError, RecursionError, ValueError) as error:
        raise InvalidInput(f"{path} is not valid {'JSON' if path.suffix == '.json' else 'YAML'}: {error}") from None


def read_as(path: Path, model: type[Model]) -> Model:
    """Read a file and validate it as `model`.

    Raises:
        InvalidInput: naming file, field, value and rule for at most five faults.
    """
    return validate_as(read_document(path), model, origin=str(path))


def validate_as(data: Any, model: type[Model], origin: str) -> Model:
    """Validate parsed data as `model`; `origin` names where it came from in errors."""
    try:
        return model.model_validate(data)
    except ValidationError as error:
        raise InvalidInput(f"{origin}: {_explain(error, model)}") from None


def _explain(error: ValidationError, model: type[BaseModel]) -> str:
    faults = error.errors(include_url=False)
    lines = [_explain_fault(fault, model) for fault in faults[:MOST_ERRORS_SHOWN]]
    if len(faults) > MOST_ERRORS_SHOWN:
        lines.append(f"... and {len(faults) - MOST_ERRORS_SHOWN} more")
    return lines[0] if len(lines) == 1 else "\n  ".join([f"{len(faults)} faults", *lines])


def _explain_fault(fault: Any, model: type[BaseModel]) -> str:
    where = ".".join(str(part) for part in fault["loc"]) or "the document"
    message = str(fault["msg"]).removeprefix("Value error, ")
    if fault["type"] == "extra_forbidden":
        known = ", ".join(field.alias or name for name, field in model.model_fields.items())
        hint = f"; known fields: {known}" if len(fault["loc"]) == 1 else ""
        return f"field '{where}' is not known; remove it or mend its spelling{hint}"
    if fault["type"] == "missing":
        return f"field '{where}' is missing; add it"
    if fault["loc"]:
        return f"field '{where}': {message}, but got {_shorten(fault['input'])}"
    return message


def _shorten(value: Any, limit: int = 80) -> str:
    text = repr(value)
    return text if len(text) <= limit else text[: limit - 3] + "..."


def read_csv(path: Path) -> list[dict[str, str]]:
    """Rows of a CSV file with a header, as text.

    Raises:
        InvalidInput: it has no header or no rows, or a row has more or fewer fields than the header.
    """
    reader = csv.DictReader(read_text(path).splitlines())
    if not reader.fieldnames:
        raise InvalidInput(f"{path} is empty; it must begin with a header line")
    rows = list(reader)
    if not rows:
        raise InvalidInput(f"{path} has a header and no rows; add at least one measurement")
    for number, row in enumerate(rows, start=2):
        if None in row or None in row.values():
            raise InvalidInput(
                f"{path}, line {number}: the header has {len(reader.fieldnames)} fields; the row has more or fewer"
            )
    return rows
