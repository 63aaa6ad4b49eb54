import json
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from models.errors import InvalidInput
from testbeds.kafka.recording.json_values import JsonColumns


def _batch(*values: Any) -> pa.Array:
    return pa.array([None if value is None else json.dumps(value).encode() for value in values], pa.binary())


def test_fields_that_come_later_and_wider_numbers_are_in_one_schema() -> None:
    columns, first = JsonColumns(), _batch({"a": 1, "b": None}, None)
    second = _batch({"a": 1.5, "c": {"x": "y"}}, {"b": [1], "c": {"z": True}})
    columns.learn(first)
    columns.learn(second)
    assert columns.schema.field("a").type == pa.float64()
    assert columns.columns(first).to_pylist() == [{"a": 1.0, "b": None, "c": None}, {"a": None, "b": None, "c": None}]
    assert columns.columns(second).to_pylist() == [
        {"a": 1.5, "b": None, "c": {"x": "y", "z": None}},
        {"a": None, "b": [1], "c": {"x": None, "z": True}},
    ]


def test_times_stay_texts() -> None:
    columns = JsonColumns()
    for value in ({"at": "2026-01-01 00:00:00"}, {"at": "soon"}):
        columns.learn(_batch(value))
    assert columns.schema.field("at").type == pa.string()
    assert columns.columns(_batch({"at": "2026-01-01 00:00:00"})).to_pylist() == [{"at": "2026-01-01 00:00:00"}]


def test_a_value_over_several_lines_is_one() -> None:
    columns, values = JsonColumns(), pa.array([b'{\n "a": 1\n}', b'{"a": 2}'], pa.binary())
    columns.learn(values)
    assert columns.columns(values).to_pylist() == [{"a": 1}, {"a": 2}]


@pytest.mark.parametrize(
    ("value", "shown"),
    [(b"not JSON", "one is 'not JSON'"), (b"[1]", "one is '[1]'"), (b"", "one is ''"), (b"\xff\x00", r"one is '\\xff")],
)
def test_a_value_that_is_no_object_is_shown(value: bytes, shown: str) -> None:
    with pytest.raises(InvalidInput) as error:
        JsonColumns().learn(pa.array([b'{"a": 1}', value], pa.binary()))
    assert "every value must be a JSON object" in str(error.value) and shown in str(error.value)


def test_types_that_do_not_go_together_are_named_with_their_field() -> None:
    columns = JsonColumns()
    columns.learn(_batch({"a": {"b": 1}}))
    with pytest.raises(InvalidInput, match=r"the field 'a\.b' is int64 in some values and string in others"):
        columns.learn(_batch({"a": {"b": "one"}}))
    with pytest.raises(InvalidInput, match="JSON objects, but not of one form"):
        JsonColumns().learn(_batch({"a": 1}, {"a": "one"}))


@given(
    st.lists(st.dictionaries(st.sampled_from("abc"), st.integers(-(2**40), 2**40) | st.none()), min_size=1, max_size=20)
)
def test_what_is_read_is_what_was_written(values: list[dict[str, Any]]) -> None:
    columns = JsonColumns()
    for value in values:
        columns.learn(_batch(value))
    names = columns.schema.names
    found = columns.columns(_batch(*values)).to_pylist() if names else [{}] * len(values)
    assert found == [{name: value.get(name) for name in names} for value in values]
