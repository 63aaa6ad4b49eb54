"""JSON values as columns: one schema for all of them, found while they are read."""

import io
import json
from collections.abc import Sequence
from typing import Final

import pyarrow as pa
import pyarrow.json as pj

from models.errors import InvalidInput

_SHOWN: Final = 60
"""Characters of a value that an error shows."""


class JsonColumns:
    """Collects the schema of JSON objects; texts stay texts, times among them."""

    def __init__(self) -> None:
        self.schema = pa.schema([])

    def learn(self, values: pa.Array) -> None:
        """Take some values, of which some may be null.

        Raises:
            InvalidInput: one is no JSON object, or a field has types that do not go together.
        """
        found = _parsed(values, None)
        fields = {field.name: field.type for field in self.schema}
        for field in found.schema:
            fields[field.name] = _joined(field.name, fields.get(field.name, pa.null()), _plain(field.type))
        self.schema = pa.schema(fields)

    def columns(self, values: pa.Array) -> pa.Table:
        """The columns of some values."""
        return _parsed(values, self.schema)


def _parsed(values: pa.Array, schema: pa.Schema | None) -> pa.Table:
    lines = [b"{}" if value is None else value.replace(b"\n", b" ") for value in values.to_pylist()]
    if schema is not None and not len(schema):
        return pa.table({})
    text = b"\n".join(lines)
    options = pj.ParseOptions(explicit_schema=schema, unexpected_field_behavior="infer" if schema is None else "ignore")
    try:
        # One block: types are found in the first block only.
        found = pj.read_json(io.BytesIO(text), pj.ReadOptions(use_threads=False, block_size=len(text) + 1), options)
    except pa.ArrowInvalid as error:
        raise _wrong(lines, str(error)) from error
    if found.num_columns and found.num_rows != len(lines):
        raise _wrong(lines, f"{found.num_rows} objects in {len(lines)} values")
    return found


def _wrong(lines: Sequence[bytes], said: str) -> InvalidInput:
    for line in lines:
        try:
            kind = type(json.loads(line))
        except ValueError:
            return InvalidInput(
                f"every value must be a JSON object, but one is {_shortened(line)}; record them as they are"
            )
        if kind is not dict:
            return InvalidInput(
                f"every value must be a JSON object, but one is {_shortened(line)}; record them as they are"
            )
    return InvalidInput(
        f"the values are JSON objects, but not of one form ({said.splitlines()[0]}); record them as they are"
    )


def _shortened(line: bytes) -> str:
    text = line.decode("utf-8", errors="backslashreplace")
    return repr(text if len(text) <= _SHOWN else f"{text[:_SHOWN]}...")


def _plain(kind: pa.DataType) -> pa.DataType:
    """The type without times, which other values of the field may not be."""
    if pa.types.is_timestamp(kind) or pa.types.is_date(kind) or pa.types.is_time(kind):
        return pa.string()
    if pa.types.is_struct(kind):
        return pa.struct([pa.field(field.name, _plain(field.type)) for field in kind])
    if pa.types.is_list(kind):
        return pa.list_(_plain(kind.value_type))
    return kind


def _joined(name: str, one: pa.DataType, other: pa.DataType) -> pa.DataType:
    if one == other or pa.types.is_null(other):
        return one
    if pa.types.is_null(one):
        return other
    if {one, other} == {pa.int64(), pa.float64()}:
        return pa.float64()
    if pa.types.is_struct(one) and pa.types.is_struct(other):
        fields = {field.name: field.type for field in one}
        for field in other:
            fields[field.name] = _joined(f"{name}.{field.name}", fields.get(field.name, pa.null()), field.type)
        return pa.struct(list(fields.items()))
    if pa.types.is_list(one) and pa.types.is_list(other):
        return pa.list_(_joined(f"{name}[]", one.value_type, other.value_type))
    raise InvalidInput(f"the field {name!r} is {one} in some values and {other} in others; record them as they are")
