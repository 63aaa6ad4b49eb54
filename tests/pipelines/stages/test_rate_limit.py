"""A rate limit in the job's file, from the file to the plan: published measurements of q5."""

from pathlib import Path

import pytest
import yaml

from models.errors import Infeasible
from models.job import records_in_per_source_record
from pipelines.inputs.catalogue import load_job
from pipelines.inputs.plan_request import PlanRequest
from pipelines.planning.replan import replan
from pipelines.run import PipelineRun
from pipelines.stages import run_all
from pipelines.store.plans import PlanStore
from pipelines.store.workspace import Workspace


@pytest.mark.slow
def test_a_sinks_rate_limit_bounds_the_plan_and_refuses_higher_rates(
    tracked_workspace: Workspace, recorded_request: PlanRequest, tmp_path: Path
) -> None:
    job = load_job("nexmark-q5")
    sink = job.scaled_operators[-1].name
    limit = 420_000 * records_in_per_source_record(job)[sink]
    document = job.model_dump(mode="json", by_alias=True, exclude_none=True)
    del document["sql"]
    for operator in document["operators"]:
        if operator["name"] == sink:
            operator["rate_limit"] = limit
    path = tmp_path / "nexmark-q5.yaml"
    path.write_text(yaml.safe_dump(document))
    request = recorded_request.model_copy(update={"job": str(path), "rate": 400_000.0, "run": "r"})
    run_all(PipelineRun(request, tracked_workspace))
    plan = PlanStore(tracked_workspace).current("nexmark-q5")
    # 19 task slots by the log law, as without the limit, which take more than the sink does.
    assert plan.task_slots == 19
    assert plan.predicted_mst.value == plan.predicted_mst.high == pytest.approx(420_000)
    assert plan.bound_by is not None and (plan.bound_by.vertex, plan.bound_by.cause) == (sink, "rate limit")
    assert plan.bound_by.effect is not None and plan.bound_by.effect.rate_then == pytest.approx(444_840, abs=1)
    with pytest.raises(Infeasible, match=rf"to {sink}, but its rate_limit is .* plan for at most 420,000 records/s"):
        replan(tracked_workspace, "nexmark-q5", 430_000)
