"""A digest says whether two values say the same, whatever their spelling."""

import hashlib
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from models.dataflow import Edge, Partitioning
from pipelines.inputs.catalogue import load_job
from pipelines.store.digests import canonical_json, digest, digest_bytes

JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


def test_the_digest_is_the_sha256_of_the_canonical_text() -> None:
    assert canonical_json({"b": 1.0, "a": [True, None, "é"]}) == '{"a":[true,null,"é"],"b":1}'
    expected = hashlib.sha256('{"a":[true,null,"é"],"b":1}'.encode()).hexdigest()
    assert digest({"b": 1.0, "a": [True, None, "é"]}) == expected


def test_order_of_fields_spelling_of_numbers_and_tuples_do_not_matter() -> None:
    assert digest({"x": 65536, "y": (1, 2)}) == digest({"y": [1.0, 2.0], "x": 65536.0})


@pytest.mark.parametrize("other", [{"x": 1.5}, {"x": "1"}, {"x": True}, {"x": None}, {"X": 1}, {}, {"x": [1]}])
def test_other_content_has_another_digest(other: dict[str, Any]) -> None:
    assert digest({"x": 1}) != digest(other)


def test_what_flink_calls_an_operator_is_in_its_file_but_in_no_digest() -> None:
    """Measurements made before the name was added to the file are still those of the job."""
    job = load_job("wordcount")
    operators = tuple(o.model_copy(update={"flink_name": f"the {o.name}"}) for o in job.operators)
    named = job.model_copy(update={"operators": operators})
    assert digest(named) == digest(job) and digest([named, 1]) == digest([job, 1])
    assert json.loads(named.model_dump_json())["operators"][0]["flink_name"] == "the source"
    assert "flink_name" not in json.loads(job.model_dump_json())["operators"][0]
    renamed = job.model_copy(update={"operators": (operators[0].model_copy(update={"name": "s"}), *operators[1:])})
    assert digest(renamed) != digest(job)


def test_a_model_counts_as_the_json_it_is_stored_as_at_any_depth() -> None:
    edge = Edge(upstream="a", downstream="b", partitioning=Partitioning.HASH)
    stored = {"from": "a", "to": "b", "partitioning": "hash", "share": 1.0}
    assert digest(edge) == digest(stored)
    assert digest({"edges": [edge]}) == digest({"edges": [stored]})


@pytest.mark.slow
@given(JSON_VALUES)
def test_writing_and_reading_keeps_the_digest(value: Any) -> None:
    assert digest([json.loads(json.dumps(value))]) == digest([value])


@pytest.mark.parametrize("number", [float("nan"), float("inf"), float("-inf")])
def test_what_is_no_number_has_no_digest(number: float) -> None:
    with pytest.raises(ValueError, match="not JSON compliant"):
        digest({"x": number})


def test_what_json_does_not_know_has_no_digest() -> None:
    with pytest.raises(TypeError, match="not JSON serializable"):
        digest({"x": object()})
    with pytest.raises(TypeError, match="names in JSON must be text, but got 1"):
        digest({1: "x"})  # type: ignore[dict-item]


def test_bytes_have_the_digest_that_sha256sum_prints() -> None:
    assert digest_bytes(b"abc") == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
