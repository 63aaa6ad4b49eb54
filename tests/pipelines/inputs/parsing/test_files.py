from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from models.cluster import Cluster
from models.dataflow import Dataflow
from models.errors import InvalidInput
from pipelines.inputs.parsing.documents import Unparsable, parse_json, parse_yaml
from pipelines.inputs.parsing.faults import known_fields
from pipelines.inputs.parsing.files import MOST_DOCUMENT_BYTES, read_as, read_csv, read_document, read_text, validate_as


def test_a_missing_file_and_a_folder_are_reported(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="does not exist; check the path"):
        read_text(tmp_path / "no.yaml")
    with pytest.raises(InvalidInput, match="is a folder; name a file in it"):
        read_text(tmp_path)


def test_a_byte_order_mark_is_dropped(tmp_path: Path) -> None:
    path = tmp_path / "m.csv"
    path.write_bytes(b"\xef\xbb\xbfmst,task_slots\r\n1,2\r\n")
    assert read_csv(path) == [{"mst": "1", "task_slots": "2"}]


def test_a_file_that_is_too_large_is_refused_unread(tmp_path: Path) -> None:
    path = tmp_path / "big.yaml"
    with path.open("wb") as file:
        file.truncate(MOST_DOCUMENT_BYTES + 1)
    with pytest.raises(InvalidInput, match="must have at most"):
        read_document(path)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"a": 1,}', "line 1 column"),
        ('{"a": 1, "a": 2}', "'a' appears 2 times"),
        ("a: 1", "Expecting value"),
        ("[" * 200_000, "nested too deeply"),
    ],
)
def test_json_is_read_strictly(text: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "d.json"
    path.write_text(text)
    with pytest.raises(InvalidInput, match=f"is not valid JSON: .*{message}"):
        read_document(path)


def test_not_a_number_in_json_is_refused_by_the_schema(tmp_path: Path) -> None:
    path = tmp_path / "c.json"
    path.write_text('{"workers": [{"name": "a", "slots": 1, "io": NaN}]}')
    with pytest.raises(InvalidInput, match=r"workers.0 \(a\).io.*finite number, but got nan"):
        read_as(path, Cluster)


def test_anchors_and_merge_keys_within_reason_are_fine(tmp_path: Path) -> None:
    path = tmp_path / "c.yaml"
    path.write_text(
        "workers:\n  - &w {name: a, slots: 2}\n  - {<<: *w, name: b}\n",
    )
    assert [w.name for w in read_as(path, Cluster).workers] == ["a", "b"]


def test_lines_are_those_of_the_nearest_field() -> None:
    document = parse_yaml("name: x\nworkers:\n  - name: a\n    slots: 0\n")
    assert document.line_of(("workers", 0, "slots")) == 4
    assert document.line_of(("workers", 0, "io")) == 3
    assert document.line_of(("nothing",)) is None
    assert parse_json("{}").line_of(("a",)) is None


def test_known_fields_are_those_of_the_model_at_the_place() -> None:
    assert known_fields(Dataflow, ("operators", 3))[:2] == ["name", "parallelism"]
    assert known_fields(Dataflow, ("edges", 0)) == ["from", "to", "partitioning", "share"]
    assert known_fields(Cluster, ())[-7:] == ["count", "slots", "cores", "memory_mb", "io", "net", "price_per_hour"]


def test_data_that_was_not_a_file_is_named_by_its_origin() -> None:
    with pytest.raises(InvalidInput, match=r"^the answer: it is empty"):
        validate_as(None, Cluster, "the answer")


def test_long_values_are_cut_in_messages() -> None:
    with pytest.raises(InvalidInput) as caught:
        validate_as({"workers": [{"name": "a", "slots": "x" * 10_000}]}, Cluster, "c")
    assert len(str(caught.value)) < 400


@given(st.text(max_size=200))
def test_any_text_is_parsed_or_refused(text: str) -> None:
    for parse in (parse_yaml, parse_json):
        try:
            parse(text)
        except Unparsable as error:
            assert str(error)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "is empty; it must begin with a header line"),
        ("mst,task_slots\n", "has a header and no rows"),
        ("mst,mst\n1,2\n", "'mst' appears 2 times"),
        ("mst,task_slots\n1,2\n\n3\n", "line 4: the header has 2 fields"),
        ("mst,task_slots\n1,2,3\n", "line 2: the header has 2 fields"),
        ('mst,task_slots\n"' + "x" * 200_000 + '",1\n', "not CSV"),
    ],
)
def test_wrong_csv_is_reported(content: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "m.csv"
    path.write_text(content)
    with pytest.raises(InvalidInput, match=message):
        read_csv(path)


def test_csv_keeps_line_breaks_within_quotes(tmp_path: Path) -> None:
    path = tmp_path / "m.csv"
    path.write_text('mst,remark\n1,"two\nlines"\n')
    assert read_csv(path) == [{"mst": "1", "remark": "two\nlines"}]
