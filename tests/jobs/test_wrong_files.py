"""A user adds a job by adding one file; a wrong file gets an error that names the field, the value and the fix."""

from pathlib import Path

import pytest

from models.errors import InvalidInput
from pipelines.inputs.catalogue import load_cluster, load_job

RIGHT = """\
name: clicks
description: Counts clicks.
figures_from: "assumed: for this test."
operators:
  - name: source
    kind: source
    cost: {cpu_s: 1.0e-6, bytes_out: 100}
    figures_from: test
  - name: count
    cost: {cpu_s: 2.0e-6}
    window: {kind: tumbling, length_s: 10}
    keys: {distinct: 100}
    figures_from: test
  - name: sink
    kind: sink
    cost: {cpu_s: 1.0e-7}
    figures_from: test
edges:
  - {from: source, to: count, partitioning: hash}
  - {from: count, to: sink, partitioning: rebalance}
"""

FAULTS = {
    "misspelt field": (
        "description: Counts",
        "descripton: Counts",
        ["line 2", "'descripton' is not known", "did you mean 'description'"],
    ),
    "misspelt nested field": (
        "{cpu_s: 2.0e-6}",
        "{cpus: 2.0e-6}",
        ["line 10", "operators.1 (count).cost.cpus", "did you mean 'cpu_s'", "bytes_out"],
    ),
    "negative cost": (
        "{cpu_s: 2.0e-6}",
        "{cpu_s: -1}",
        ["line 10", "operators.1 (count).cost.cpu_s", "greater than 0", "got -1"],
    ),
    "cost that is not a number": ("{cpu_s: 2.0e-6}", "{cpu_s: .nan}", ["cost.cpu_s", "finite number", "got nan"]),
    "infinite cost": ("{cpu_s: 2.0e-6}", "{cpu_s: .inf}", ["cost.cpu_s", "finite number", "got inf"]),
    "cost in words": ("{cpu_s: 2.0e-6}", "{cpu_s: two}", ["cost.cpu_s", "valid number", "got 'two'"]),
    "missing cost": ("    cost: {cpu_s: 2.0e-6}\n", "", ["operators.1 (count).cost", "missing", "add it"]),
    "cycle": (
        "  - {from: count, to: sink,",
        "  - {from: count, to: count, partitioning: hash}\n  - {from: count, to: sink,",
        ["must not have a cycle", "count -> count", "remove one of its edges"],
    ),
    "unknown operator in an edge": (
        "{from: source, to: count,",
        "{from: source, to: cuont,",
        ["'source' -> 'cuont'", "does not exist", "source, count, sink"],
    ),
    "operator given twice": ("name: count", "name: sink", ["must be unique", "'sink' appears 2 times"]),
    "edge given twice": (
        "edges:\n",
        "edges:\n  - {from: source, to: count, partitioning: hash}\n",
        ["'source' -> 'count' appears twice", "keep one"],
    ),
    "source with input": (
        "edges:\n",
        "edges:\n  - {from: sink, to: source, partitioning: hash}\n",
        ["cycle"],
    ),
    "source in the middle": (
        "  - name: count\n",
        "  - name: count\n    kind: source\n",
        ["'count' (source)", "no incoming edge", "fix its kind or the edges"],
    ),
    "operator without input": (
        "  - {from: source, to: count, partitioning: hash}",
        "  - {from: source, to: sink, partitioning: hash}",
        ["'count' (operator)", "needs an incoming edge"],
    ),
    "sink with output": (
        "  - name: count\n",
        "  - name: count\n    kind: sink\n",
        ["'count' (sink)", "no outgoing edge"],
    ),
    "share above 1": (
        "to: count, partitioning: hash}",
        "to: count, partitioning: hash, share: 1.5}",
        ["line 19", "edges.0.share", "less than or equal to 1", "got 1.5"],
    ),
    "source shares that do not sum to 1": (
        "kind: source",
        "kind: source\n    rate_share: 0.5",
        ["rate_share", "must sum to 1", "0.5"],
    ),
    "unknown partitioning": (
        "to: count, partitioning: hash}",
        "to: count, partitioning: hashed}",
        [
            "edges.0.partitioning",
            "'forward', 'rebalance', 'hash' or 'broadcast'",
            "got 'hashed'",
            "did you mean 'hash'",
        ],
    ),
    "hot key without a period": (
        "{distinct: 100}",
        "{distinct: 100, hot_share: 0.5}",
        ["line 12", "operators.1 (count).keys", "hot_period_records", "hot_share is 0.5"],
    ),
    "slide of a tumbling window": (
        "length_s: 10}",
        "length_s: 10, slide_s: 2}",
        ["operators.1 (count).window", "'slide_s' must be given for a sliding window, and only there"],
    ),
    "name with a path in it": ("name: clicks", "name: ../clicks", ["line 1", "field 'name'", "../clicks"]),
    "newer version": ("name: clicks", "name: clicks\nschema_version: 2", ["field 'schema_version'", "1", "got 2"]),
    "field given twice": (
        "description: Counts clicks.",
        "description: Counts clicks.\nname: other",
        ["'name' appears on line 1 and again on line 3", "keep one"],
    ),
    "two documents": ("edges:", "---\nedges:", ["line 18", "but found another document"]),
    "python object": (
        "description: Counts clicks.",
        "description: !!python/object/apply:os.system ['true']",
        ["line 2", "python/object/apply:os.system", "use plain values"],
    ),
    "tab for indentation": ("    kind: source", "\tkind: source", ["not valid YAML: line 6", "\\t"]),
}


@pytest.fixture
def job_file(tmp_path: Path) -> Path:
    return tmp_path / "clicks.yaml"


def test_the_right_file_loads(job_file: Path) -> None:
    job_file.write_text(RIGHT)
    assert load_job(job_file).order == ("source", "count", "sink")


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_is_reported_with_field_value_and_fix(fault: str, job_file: Path) -> None:
    right, wrong, parts = FAULTS[fault]
    assert right in RIGHT
    job_file.write_text(RIGHT.replace(right, wrong, 1))
    with pytest.raises(InvalidInput) as caught:
        load_job(job_file)
    message = str(caught.value)
    assert message.startswith(str(job_file))
    assert [part for part in parts if part not in message] == [], message
    assert "pydantic" not in message and len(message) < 1000


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "it is empty"),
        (b"# only a remark\n", "it is empty"),
        (b"- name: clicks\n", "holds a list"),
        (b"clicks\n", "holds a str"),
        (b"name: caf\xe9\n", "must be UTF-8 text, but byte 9 is not"),
        (b"name: [clicks\n", "not valid YAML"),
        (b"\x00\x01", "not valid YAML"),
        (b"name: *base\n", "undefined alias"),
        (b"operators: &o [*o]\n", "contains itself"),
    ],
)
def test_a_file_that_is_no_job_at_all_is_reported(content: bytes, message: str, job_file: Path) -> None:
    job_file.write_bytes(content)
    with pytest.raises(InvalidInput, match=message):
        load_job(job_file)


def billion_laughs() -> str:
    lines = ["a0: &a0 [lol, lol]"]
    lines += [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 10)}]" for i in range(1, 30)]
    return "\n".join([*lines, "name: *a29", ""])


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (billion_laughs(), "expands to more than"),
        ("name: " + "[" * 20_000 + "]" * 20_000, "nested too deeply"),
        pytest.param("- " * 20_000 + "a", "nested too deeply", marks=pytest.mark.slow),
        ("a: " * 3, "not valid YAML"),
    ],
)
def test_hostile_yaml_is_refused(content: str, message: str, job_file: Path) -> None:
    job_file.write_text(content)
    with pytest.raises(InvalidInput, match=message):
        load_job(job_file)


def test_five_faults_are_shown_and_the_rest_counted(job_file: Path) -> None:
    job_file.write_text(RIGHT + "".join(f"unknown{i}: 1\n" for i in range(7)))
    with pytest.raises(InvalidInput) as caught:
        load_job(job_file)
    assert str(caught.value).count("is not known") == 5
    assert "7 faults" in str(caught.value) and "and 2 more" in str(caught.value)


def test_the_same_fault_in_every_item_is_reported_once(tmp_path: Path) -> None:
    path = tmp_path / "c.yaml"
    path.write_text("count: 300\nslots: 0\n")
    with pytest.raises(InvalidInput) as caught:
        load_cluster(path)
    assert str(caught.value).count("slots") == 1
    assert "greater than or equal to 1, but got 0 (and 299 more like it)" in str(caught.value)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("count: 3\nslots: 4\ncorse: 4\n", "did you mean 'cores'"),
        ("count: 0\nslots: 4\n", "'count' must be a whole number from 1 to 100000, but got 0"),
        ("count: 1000000000000\nslots: 4\n", "'count' must be a whole number"),
        ("count: 2\nslots: 4\nworkers: []\n", "not both"),
        ("workers: []\n", "at least 1 item"),
        ("workers: [{name: a, slots: 1}, {name: a, slots: 1}]\n", "'a' appears 2 times"),
        ("workers: [{name: a, slots: 1, memory_mb: 0}]\n", r"workers.0 \(a\).memory_mb.*greater than 0, but got 0"),
        ("slots: 4\n", "need 'count', the number of equal workers; add it"),
        ("name: mine\n", "field 'workers' is missing"),
    ],
)
def test_a_wrong_cluster_is_reported(content: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "c.yaml"
    path.write_text(content)
    with pytest.raises(InvalidInput, match=message):
        load_cluster(path)
