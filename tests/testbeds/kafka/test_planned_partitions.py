"""Partitions of a source's topics, asked of a broker when a plan is begun."""

from pathlib import Path

import pytest
import yaml

from models.errors import InvalidInput, SluiceError
from pipelines.inputs.plan_request import PlanRequest
from pipelines.run import REQUEST_FILE, PipelineRun
from pipelines.store.workspace import Workspace
from testbeds.kafka.connection import KafkaConnection
from testbeds.kafka.topics import Topics


def written(folder: Path, brokers: str | None, topics: list[str], stated: int | None = None) -> str:
    operators = [
        {"name": name, "kind": kind, "cost": {"cpu_s": 1e-3}, "figures_from": "made up"}
        for name, kind in (("clicks", "source"), ("count", "operator"), ("sink", "sink"))
    ]
    operators[0] |= {"topics": topics} | ({} if stated is None else {"max_parallelism": stated})
    edges = [
        {"from": "clicks", "to": "count", "partitioning": "rebalance"},
        {"from": "count", "to": "sink", "partitioning": "rebalance"},
    ]
    document = {"name": "counts", "description": "A job.", "figures_from": "made up"}
    path = folder / "counts.yaml"
    path.write_text(yaml.safe_dump({**document, "brokers": brokers, "operators": operators, "edges": edges}))
    return str(path)


def request(job: str) -> PlanRequest:
    return PlanRequest(job=job, rate=1000.0, run="r")


@pytest.mark.slow
def test_a_run_keeps_the_partitions_that_it_began_with(kafka: KafkaConnection, topics: Topics, tmp_path: Path) -> None:
    topics.create("planned-a", partitions=8)
    topics.create("planned-b", partitions=4)
    asked = request(written(tmp_path, kafka.bootstrap, ["planned-a", "planned-b"]))
    workspace = Workspace(tmp_path / "workspace")
    run = PipelineRun(asked, workspace)
    run.start()
    assert run.job.operator("clicks").max_parallelism == 12
    topics.delete("planned-b")
    opened = PipelineRun.open(workspace, f"runs/counts/r/{REQUEST_FILE}")
    assert opened.job.operator("clicks").max_parallelism == 12
    with pytest.raises(InvalidInput, match="there is no topic 'planned-b'"):
        PipelineRun(asked, workspace).start()


@pytest.mark.slow
def test_the_file_and_the_broker_must_agree(kafka: KafkaConnection, topics: Topics, tmp_path: Path) -> None:
    topics.create("planned-c", partitions=8)
    workspace = Workspace(tmp_path / "workspace")
    path = written(tmp_path, None, ["planned-c"], stated=12)
    assert PipelineRun(request(path), workspace).job.operator("clicks").max_parallelism == 12
    with pytest.raises(InvalidInput, match=r"\(planned-c\), which are 8 at .*, but is 12; remove or correct it"):
        _ = PipelineRun(request(path), workspace, brokers=kafka.bootstrap).job


@pytest.mark.slow
def test_a_broker_that_is_away_is_named(tmp_path: Path) -> None:
    asked = request(written(tmp_path, "127.0.0.1:1", ["clicks"]))
    with pytest.raises(SluiceError, match=r"no Kafka broker answers at 127\.0\.0\.1:1"):
        PipelineRun(asked, Workspace(tmp_path / "workspace")).start()
