"""Reading users' files: YAML, JSON and CSV, validated once, with errors that name the field, the value and the fix."""

import csv
import io
from collections import Counter
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import Any, Final, TypeVar

from pydantic import BaseModel, ValidationError

from models.errors import InvalidInput
from pipelines.inputs.parsing.documents import Document, Unparsable, parse_json, parse_yaml
from pipelines.inputs.parsing.faults import LineOf, explain

Model = TypeVar("Model", bound=BaseModel)
MOST_DOCUMENT_BYTES: Final = 16 * 1024 * 1024
"""Larger YAML or JSON files are refused unread; the largest dataflows take less than 1 MiB."""
_MOST_KEPT: Final = 2048
"""Files of jobs and clusters that are kept parsed."""


def read_text(path: Path) -> str:
    """The text of a file, without a byte order mark.

    Raises:
        InvalidInput: it is missing, is a folder, cannot be read, or is not UTF-8.
    """
    try:
        return path.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        raise InvalidInput(f"the file {path} does not exist; check the path") from None
    except IsADirectoryError:
        raise InvalidInput(f"{path} is a folder; name a file in it") from None
    except UnicodeDecodeError as error:
        raise InvalidInput(
            f"the file {path} must be UTF-8 text, but byte {error.start} is not; save it in the encoding UTF-8"
        ) from None
    except (OSError, ValueError) as error:
        raise InvalidInput(f"the file {path} cannot be read: {error}") from None


def read_document(path: Path) -> Any:
    """Parse a YAML or JSON file (`.json` strictly as JSON).

    Raises:
        InvalidInput: it cannot be read or parsed, or is larger than MOST_DOCUMENT_BYTES.
    """
    return _parse(path).data


def read_as(path: Path, model: type[Model]) -> Model:
    """Read a file and validate it as `model`.

    Raises:
        InvalidInput: naming file, line, field, value and rule for at most five faults.
    """
    document = _parse(path)
    return _validate(document.data, model, str(path), document.line_of)


def read_as_one_of(path: Path, choose: Callable[[Any], type[Model]]) -> Model:
    """Read a file and validate it as the model that `choose` returns for the parsed data; raises as `read_as`.

    The model of the same text at the same path is the same object. Followers read the files of all jobs every few seconds, and
    parsing YAML is most of that work.
    """
    found: Model = _parsed_as_one_of(path, _text(path), choose)
    return found


@lru_cache(maxsize=_MOST_KEPT)
def _parsed_as_one_of(path: Path, text: str, choose: Callable[[Any], type[Model]]) -> Model:
    document = _document(path, text)
    return _validate(document.data, choose(document.data), str(path), document.line_of)


def validate_as(data: Any, model: type[Model], origin: str) -> Model:
    """Validate parsed data as `model`; `origin` is its source in errors."""
    return _validate(data, model, origin, lambda _: None)


def _parse(path: Path) -> Document:
    return _document(path, _text(path))


def _text(path: Path) -> str:
    try:
        size = path.stat().st_size
    except OSError:
        size = 0
    if size > MOST_DOCUMENT_BYTES:
        raise InvalidInput(
            f"{path} must have at most {MOST_DOCUMENT_BYTES} bytes, but has {size}; is it the right file?"
        )
    return read_text(path)


def _document(path: Path, text: str) -> Document:
    try:
        return parse_json(text) if path.suffix == ".json" else parse_yaml(text)
    except Unparsable as error:
        raise InvalidInput(f"{path} is not valid {'JSON' if path.suffix == '.json' else 'YAML'}: {error}") from None


def kind_of(model: type[BaseModel]) -> str:
    """The name of a file format in messages."""
    return (model.model_config.get("title") or model.__name__).lower()


def _validate(data: Any, model: type[Model], origin: str, line_of: LineOf) -> Model:
    if data is None:
        raise InvalidInput(f"{origin}: it is empty; it must hold the fields of a {kind_of(model)}")
    if not isinstance(data, dict):
        raise InvalidInput(
            f"{origin}: it must hold a mapping of fields to values, but holds a {type(data).__name__}; "
            f"begin with a field, for example 'name: ...'"
        )
    try:
        return model.model_validate(data)
    except ValidationError as error:
        raise InvalidInput(f"{origin}: {explain(error, model, data, line_of)}") from None
    except RecursionError:
        raise InvalidInput(f"{origin}: it is nested too deeply; flatten it") from None


def read_csv(path: Path) -> list[dict[str, str]]:
    """Rows of a CSV file with a header, as text.

    Raises:
        InvalidInput: it has no header or no rows, a column appears twice, or a row has more or fewer fields than the
            header.
    """
    reader = csv.DictReader(io.StringIO(read_text(path), newline=""))
    try:
        columns = list(reader.fieldnames or ())
        _check_header(path, columns)
        rows = []
        for row in reader:
            if None in row or None in row.values():
                raise InvalidInput(
                    f"{path}, line {reader.line_num}: the header has {len(columns)} fields; the row has more or fewer"
                )
            rows.append(row)
    except csv.Error as error:
        raise InvalidInput(f"{path}, line {reader.line_num}: this is not CSV: {error}") from None
    if not rows:
        raise InvalidInput(f"{path} has a header and no rows; add at least one measurement")
    return rows


def _check_header(path: Path, columns: list[str]) -> None:
    if not columns:
        raise InvalidInput(f"{path} is empty; it must begin with a header line")
    twice = [name for name, count in Counter(columns).items() if count > 1]
    if twice:
        raise InvalidInput(f"{path}: columns must be unique, but {twice[0]!r} appears {columns.count(twice[0])} times")
