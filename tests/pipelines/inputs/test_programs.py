"""Programs as users write them down; Flink is not asked here."""

from pathlib import Path

import pytest

from models.errors import InvalidInput
from pipelines.inputs.catalogue import job_name, load_job
from pipelines.inputs.job_files import ClusterFile
from pipelines.inputs.plan_request import PlanRequest
from pipelines.inputs.programs import job_program
from pipelines.measuring.flink import flink_address
from testbeds.flink.programs.user_programs import SqlScript, UserJar
from testbeds.kafka.feeding.feeder import GeneratedFeed
from testbeds.kafka.feeding.replay import TopicRecording
from testbeds.kafka.supply import FedTopic, KafkaFeed

FILE = "name: visits\nsql: visits.sql\ntables:\n  clicks: {file: clicks.csv, time_column: at, header_lines: 1}\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "visits.yaml").write_text(FILE)
    (tmp_path / "visits.sql").write_text("INSERT INTO a SELECT 1;")
    (tmp_path / "clicks.csv").write_text("at,page\n1,2\n")
    return tmp_path


def test_a_program_is_its_script_with_recorded_files(folder: Path) -> None:
    found = job_program(str(folder / "visits.yaml"))
    assert found is not None and found.name == "visits" and found.operators_from_flink
    assert isinstance(found.program, SqlScript) and not found.program.keep_sinks
    clicks = found.program.recordings["clicks"]
    assert (clicks.path, clicks.format, clicks.time_column, clicks.header_lines) == (
        folder / "clicks.csv",
        "csv",
        "at",
        1,
    )
    assert job_name(folder / "visits.yaml") == "visits"


@pytest.mark.parametrize("changed", ["visits.sql", "clicks.csv", "visits.yaml"])
def test_another_content_is_another_program(folder: Path, changed: str) -> None:
    before = job_program(str(folder / "visits.yaml"))
    (folder / changed).write_text((folder / changed).read_text().replace("1", "7"))
    after = job_program(str(folder / "visits.yaml"))
    assert before is not None and after is not None and before.digest != after.digest


def test_a_jar_is_named_with_its_class(folder: Path) -> None:
    (folder / "job.yaml").write_text("name: job\njar: job.jar\nentry_class: a.B\narguments: ['1']\n")
    with pytest.raises(InvalidInput, match=r"job\.jar does not exist"):
        job_program(str(folder / "job.yaml"))
    (folder / "job.jar").write_bytes(b"x")
    found = job_program(str(folder / "job.yaml"))
    assert found is not None and found.program == UserJar(folder / "job.jar", "a.B", ("1",))


FED = """\
name: shop
jar: shop.jar
entry_class: a.B
arguments: ['--brokers', '{kafka}']
topics:
  orders: {partitions: 8, recording: orders.jsonl, time: at, source: orders of today}
  clicks: {partitions: 4, keys: 10, exponent: 1.5, value_bytes: 300, share: 2}
"""


def test_topics_are_fed_where_that_is_asked_for(tmp_path: Path) -> None:
    (tmp_path / "shop.yaml").write_text(FED)
    (tmp_path / "shop.jar").write_bytes(b"x")
    (tmp_path / "orders.jsonl").write_text('{"at": 1}\n')
    rated, found = job_program(str(tmp_path / "shop.yaml")), job_program(str(tmp_path / "shop.yaml"), reads_kafka=True)
    assert rated is not None and found is not None and rated.digest != found.digest
    assert isinstance(rated.program, UserJar) and rated.program.kafka is None
    assert isinstance(found.program, UserJar) and found.program.kafka == KafkaFeed(
        (
            FedTopic("orders", 8, TopicRecording("orders", tmp_path / "orders.jsonl", "at"), source="orders of today"),
            FedTopic("clicks", 4, GeneratedFeed("clicks", 10, 1.5, 300), 2.0),
        )
    )
    (tmp_path / "orders.jsonl").write_text('{"at": 2}\n')
    changed = job_program(str(tmp_path / "shop.yaml"), reads_kafka=True)
    assert changed is not None and changed.digest != found.digest


@pytest.mark.parametrize("file", ["visits.yaml", "visits.sql", "visits.jar"])
def test_a_program_without_topics_cannot_be_fed(folder: Path, file: str) -> None:
    with pytest.raises(
        InvalidInput, match=r"needs a program file that names the topics.*topics: \{clicks: \{partitions"
    ):
        job_program(str(folder / file), reads_kafka=True)


def test_a_bare_jar_is_answered_with_the_file_that_it_needs(folder: Path) -> None:
    with pytest.raises(InvalidInput, match=r"\{name: visits, jar: visits\.jar, entry_class: \.\.\.\}"):
        job_program(str(folder / "visits.jar"))


def test_topics_are_fed_on_flink_only() -> None:
    with pytest.raises(ValueError, match="'feed' must be given for the testbed 'flink' only"):
        PlanRequest(job="shop.yaml", rate=1.0, feed="kafka")
    assert "feed" not in PlanRequest(job="nexmark-q1", rate=1.0).model_dump()


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("name: j\nsql: a.sql\njar: a.jar\n", "exactly one of 'sql' and 'jar'"),
        ("name: j\njar: a.jar\n", "'entry_class' must be given for a jar"),
        ("name: j\njar: a.jar\nentry_class: a.B\nkeep_sinks: true\n", "made with sluice.Rated"),
        ("name: j\nsql: a.sql\narguments: [x]\n", "belong to a jar's main method"),
        ("name: j\nsql: a.sql\nsources: [x]\n", "'sources' is not known"),
    ],
)
def test_a_wrong_file_is_reported(tmp_path: Path, text: str, reason: str) -> None:
    (tmp_path / "j.yaml").write_text(text)
    with pytest.raises(InvalidInput, match=reason):
        job_program(str(tmp_path / "j.yaml"))


def test_jobs_of_the_catalogue_run_as_their_sql_or_as_nothing() -> None:
    q5 = job_program("nexmark-q5")
    assert q5 is not None and not q5.operators_from_flink and isinstance(q5.program, SqlScript)
    assert job_program("wordcount") is None


def test_a_program_has_no_operators_without_flink(folder: Path) -> None:
    with pytest.raises(InvalidInput, match="only `sluice plan --testbed flink`"):
        load_job(folder / "visits.yaml")


def test_the_cluster_that_is_measured_on_is_the_one_named(tmp_path: Path) -> None:
    plain = ClusterFile.model_validate({"count": 1, "slots": 4})
    running = ClusterFile.model_validate({"count": 1, "slots": 4, "flink": {"rest_url": "http://jobmanager:8081/"}})
    assert flink_address(None, plain) is None
    found = flink_address(None, running)
    assert found is not None and found.rest_url == "http://jobmanager:8081"
    named = flink_address("https://other:8081", running)
    assert named is not None and named.rest_url == "https://other:8081"
    (tmp_path / "c.yaml").write_text(
        "count: 1\nslots: 4\nflink: {rest_url: 'http://a:1', prometheus_url: 'http://b:2', control_host: c}\n"
    )
    from_file = flink_address(str(tmp_path / "c.yaml"), plain)
    assert from_file is not None and (from_file.prometheus_url, from_file.control_host) == ("http://b:2", "c")
    with pytest.raises(InvalidInput, match="must have an address"):
        flink_address("testbed", plain)


def test_where_no_cluster_is_named_files_and_requests_read_as_before() -> None:
    plain = ClusterFile.model_validate({"count": 1, "slots": 4})
    assert "flink" not in plain.model_dump()
    assert "flink" not in PlanRequest(job="nexmark-q1", rate=1.0).model_dump()
    with pytest.raises(ValueError, match="for the testbed 'flink' only"):
        PlanRequest(job="nexmark-q1", rate=1.0, flink="http://a:1")
