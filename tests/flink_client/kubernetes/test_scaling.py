"""What is written into a FlinkDeployment, what restores it, and whether the operator redeploys the job for it."""

from typing import Any

import pytest

from flink_client.kubernetes.scaling import SpecChange, TaskManagerSize, spec_change
from models.errors import InvalidInput
from on_kubernetes.deployed_resource import CHAIN, OTHER, OVERRIDES, SOURCE, document, settled

WANTED = {SOURCE: 1, CHAIN: 3}
AS_IT_IS = TaskManagerSize(count=1, slots=4, memory_mb=2048, cores=2)


def change(
    made: dict[str, Any] | None = None,
    *,
    running: dict[str, int] | None = None,
    size: TaskManagerSize | None = None,
    adaptive: bool | None = None,
) -> SpecChange:
    resource = settled(made or document())
    return spec_change(resource, WANTED, running=running or {}, size=size, adaptive=adaptive)


def configuration(**settings: str | None) -> dict[str, Any]:
    changed = document()["spec"]["flinkConfiguration"] | settings
    return {key: value for key, value in changed.items() if value is not None}


def test_a_rescale_writes_the_overrides_alone_and_keeps_those_of_other_vertices() -> None:
    made = change()
    assert made.spec == {"flinkConfiguration": {OVERRIDES: f"{CHAIN}:3,{OTHER}:5,{SOURCE}:1"}}
    assert made.redeploys is None
    assert len(made.fields) == 1


def test_what_the_resource_states_already_is_not_written() -> None:
    made = change(document(flinkConfiguration=configuration(**{OVERRIDES: f"{SOURCE}:1,{CHAIN}:3"})), size=AS_IT_IS)
    assert (made.spec, made.undo, made.fields, made.redeploys) == ({}, {}, (), None)


def test_the_way_back_removes_no_override_since_the_operator_would_redeploy_the_job() -> None:
    assert change(running={SOURCE: 2}).undo == {"flinkConfiguration": {OVERRIDES: f"{CHAIN}:1,{OTHER}:5,{SOURCE}:2"}}
    assert change().undo == {"flinkConfiguration": {OVERRIDES: f"{CHAIN}:1,{OTHER}:5"}}, "tasks of the source unknown"


def test_of_task_managers_only_what_differs_is_written_in_the_form_that_the_resource_has() -> None:
    size = TaskManagerSize(count=3, slots=8, memory_mb=4095.5, cores=2)
    made = change(size=size)
    assert made.spec["taskManager"] == {"resource": {"memory": "4096m"}}
    assert made.spec["flinkConfiguration"]["taskmanager.numberOfTaskSlots"] == "8"
    assert made.undo["taskManager"] == {"resource": {"memory": "2g"}}
    assert made.redeploys == (
        "a change of flinkConfiguration.taskmanager.numberOfTaskSlots, taskManager.resource.memory is an upgrade"
    )
    container = {"requests": {"cpu": "1500m", "memory": "4Gi"}, "limits": {"memory": "4Gi"}}
    newer = change(document(taskManager={"resources": container}), size=size)
    assert newer.spec["taskManager"] == {"resources": {"requests": {"cpu": "2"}, "limits": {"cpu": "2"}}}


def test_replicas_count_in_standalone_mode_alone() -> None:
    size = TaskManagerSize(count=3, slots=4, memory_mb=2048, cores=None)
    assert "taskManager" not in change(size=size).spec
    assert change(document(mode="standalone"), size=size).spec["taskManager"] == {"replicas": 3}


@pytest.mark.parametrize(
    ("spec", "reason"),
    [
        ({"mode": "standalone"}, "standalone mode"),
        ({"flinkVersion": "v1_17"}, "Flink v1_17 cannot be scaled in place"),
        ({"flinkConfiguration": configuration(**{"jobmanager.scheduler": None})}, "jobmanager.scheduler: adaptive"),
        (
            {
                "flinkConfiguration": configuration(
                    **{"kubernetes.operator.job.upgrade.inplace-scaling.enabled": "false"}
                )
            },
            "inplace-scaling.enabled: false",
        ),
    ],
)
def test_the_operator_redeploys_where_it_cannot_scale_in_place(spec: dict[str, Any], reason: str) -> None:
    assert reason in (change(document(**spec)).redeploys or "")


def test_what_flink_says_of_its_scheduler_counts_more_than_the_resource() -> None:
    defaulted = document(flinkConfiguration=configuration(**{"jobmanager.scheduler": None}))
    assert change(defaulted, adaptive=True).redeploys is None
    assert "adaptive" in (change(adaptive=False).redeploys or "")


@pytest.mark.parametrize(
    ("spec", "reason"),
    [
        ({"job": None}, "is a session cluster"),
        ({"job": {"state": "suspended"}}, "is suspended"),
        ({"flinkConfiguration": {"job.autoscaler.enabled": "true"}}, "autoscaler scales"),
        ({"flinkConfiguration": {"job": {"autoscaler": {"enabled": True}}}}, "autoscaler scales"),
        ({"flinkConfiguration": {"pipeline": {"jobvertex-parallelism-overrides": f"{CHAIN}:1"}}}, "nested maps"),
        ({"flinkConfiguration": {OVERRIDES: "many"}}, "must be vertexId:tasks"),
    ],
)
def test_a_resource_that_cannot_be_changed_safely_is_refused(spec: dict[str, Any], reason: str) -> None:
    with pytest.raises(InvalidInput, match=reason):
        change(document(**spec))
