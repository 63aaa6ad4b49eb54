"""Partitions of a source, from the job's file to the plan: published measurements of q5."""

from pathlib import Path

import pytest
import yaml

from models.errors import Infeasible
from pipelines.inputs.catalogue import load_job
from pipelines.inputs.plan_request import PlanRequest
from pipelines.planning.replan import replan
from pipelines.run import PipelineRun
from pipelines.stages import run_all
from pipelines.store.plans import PlanStore
from pipelines.store.workspace import Workspace


@pytest.mark.slow
def test_a_source_gets_tasks_that_share_its_partitions_and_the_plan_says_so(
    tracked_workspace: Workspace, recorded_request: PlanRequest, tmp_path: Path
) -> None:
    document = load_job("nexmark-q5").model_dump(mode="json", by_alias=True, exclude_none=True)
    del document["sql"]
    document["key_groups"] = 1021
    (source,) = [operator for operator in document["operators"] if operator["kind"] == "source"]
    source |= {"max_parallelism": 12, "topics": ["bids"]}
    path = tmp_path / "nexmark-q5.yaml"
    path.write_text(yaml.safe_dump(document))
    request = recorded_request.model_copy(
        update={"job": str(path), "rate": 2_000_000.0, "run": "r", "risk": None, "headroom": 1.1}
    )
    run_all(PipelineRun(request, tracked_workspace))
    plan = PlanStore(tracked_workspace).current("nexmark-q5")
    # 1 / 3.23 us = 309,598 records/s a task: 2.2 M are 7.1 tasks, each of which keeps up with 12 / 7.1 = 1.69 partitions.
    assert plan.parallelism["source"] == 12
    assert (
        "12 partitions of source: 8 tasks would have 2 on the busiest, as 6 do, and one keeps up with 1.69; 12 planned"
        in plan.reasons
    )
    (reason,) = [operator.reason for operator in plan.operators if operator.name == "source"]
    assert reason.endswith("12 partitions of bids")
    assert any(one.startswith("key_groups: 1021 is prime") and "set 1008 or 1024" in one for one in plan.reasons)
    # At 400,000 each of 2 tasks reads 6 partitions, and keeps up with 12 / 1.42 = 8.45.
    assert replan(tracked_workspace, "nexmark-q5", 400_000).plan.parallelism["source"] == 2
    with pytest.raises(
        Infeasible, match=r"source needs 13 tasks .*its topic has 12 partitions.* at most 3,715,170 records/s"
    ):
        replan(tracked_workspace, "nexmark-q5", 4_000_000)
