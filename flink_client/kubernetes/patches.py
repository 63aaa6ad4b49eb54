"""Merge patches for a `FlinkDeployment` of the Flink Kubernetes operator (flink.apache.org/v1beta1).

In native mode the operator scales a job in place if only `pipeline.jobvertex-parallelism-overrides` changes; any change of
slots, TaskManagers or `job.parallelism` is an upgrade, which redeploys the job (`ReflectiveDiffBuilder`). So there are two
documents, and a rescale need not be an upgrade.
"""

import math
import re
from collections.abc import Mapping
from typing import Any

from flink_client.overrides import OVERRIDES_OPTION, overrides


def overrides_patch(name: str, parallelism: Mapping[str, int], annotations: Mapping[str, str]) -> dict[str, Any]:
    """Tasks by vertex id, and nothing else: the job is scaled in place."""
    return _patch(name, annotations, {"flinkConfiguration": {OVERRIDES_OPTION: overrides(parallelism)}})


def resources_patch(
    name: str,
    *,
    task_managers: int,
    slots: int,
    memory_mb: float,
    cores: float | None,
    parallelism: int,
    annotations: Mapping[str, str],
) -> dict[str, Any]:
    """TaskManagers with the memory, cores and slots of each: a change of any of them redeploys the job.

    `spec.taskManager.resources` has the form of a Kubernetes container's since FLINK-33548; `resource` is deprecated. Requests
    and limits are equal, since Flink sizes its memory by the request and is killed at the limit. `replicas` matters in
    standalone mode; in native mode TaskManagers start as slots are requested.

    Args:
        memory_mb: of a TaskManager's process, MiB.
        cores: of a TaskManager; None: those of the deployment.
        parallelism: of the job, for vertices without an override.
    """
    resources = {"memory": f"{math.ceil(memory_mb)}Mi"} | ({} if cores is None else {"cpu": f"{cores:g}"})
    return _patch(
        name,
        annotations,
        {
            "flinkConfiguration": {"taskmanager.numberOfTaskSlots": str(slots)},
            "taskManager": {"replicas": task_managers, "resources": {"requests": resources, "limits": dict(resources)}},
            "job": {"parallelism": parallelism},
        },
    )


def _patch(name: str, annotations: Mapping[str, str], spec: dict[str, Any]) -> dict[str, Any]:
    return {
        "apiVersion": "flink.apache.org/v1beta1",
        "kind": "FlinkDeployment",
        "metadata": {"name": _kubernetes_name(name), "annotations": dict(annotations)},
        "spec": spec,
    }


def _kubernetes_name(name: str) -> str:
    return re.sub(r"[^a-z0-9-]", "-", name.lower()).strip("-")
