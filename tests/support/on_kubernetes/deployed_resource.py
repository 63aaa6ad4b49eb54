"""A FlinkDeployment as somebody has deployed it, and an operator that is done with it, or fails."""

import copy
import json
from typing import Any

from kubernetes import client, config

from flink_client.kubernetes.resource import FlinkDeployment, read_resource

NAMESPACE, NAME = "streaming", "wordcount"
SOURCE, CHAIN, OTHER = "a" * 32, "b" * 32, "c" * 32
JOB_ID = "1" * 32
OVERRIDES = "pipeline.jobvertex-parallelism-overrides"
DOCUMENT: dict[str, Any] = {
    "apiVersion": "flink.apache.org/v1beta1",
    "kind": "FlinkDeployment",
    "metadata": {"name": NAME, "namespace": NAMESPACE, "annotations": {"team": "search"}},
    "spec": {
        "image": "flink:1.18",
        "flinkVersion": "v1_18",
        "mode": "native",
        "serviceAccount": "flink",
        "flinkConfiguration": {
            OVERRIDES: f"{CHAIN}:1,{OTHER}:5",
            "jobmanager.scheduler": "adaptive",
            "taskmanager.numberOfTaskSlots": "4",
        },
        "jobManager": {"resource": {"cpu": 1, "memory": "1024m"}, "replicas": 1},
        "taskManager": {"resource": {"cpu": 2, "memory": "2g"}},
        "job": {
            "jarURI": "local:///opt/flink/usrlib/job.jar",
            "parallelism": 1,
            "upgradeMode": "savepoint",
            "state": "running",
        },
    },
}
"""Its chain has one task, and a vertex that is in no plan of word count has five."""


def document(**spec: Any) -> dict[str, Any]:
    """The document with other fields of the spec; None leaves one out."""
    made = copy.deepcopy(DOCUMENT)
    made["spec"] = {key: value for key, value in (made["spec"] | spec).items() if value is not None}
    return made


def settled(made: dict[str, Any], generation: int = 1, version: str = "100", **status: Any) -> FlinkDeployment:
    """The resource of a document whose last generation the operator has made stable."""
    answer = copy.deepcopy(made)
    answer["metadata"] |= {"generation": generation, "resourceVersion": version}
    answer["status"] = status_of(answer) | status
    return read_resource(answer)


def status_of(answer: dict[str, Any], lifecycle: str = "STABLE", job: str = "RUNNING") -> dict[str, Any]:
    """As the operator writes it after it acted on the present spec."""
    metadata = {"generation": answer["metadata"]["generation"]}
    kept = {"spec": answer["spec"], "resource_metadata": {"apiVersion": answer["apiVersion"], "metadata": metadata}}
    return {
        "jobStatus": {"jobId": JOB_ID, "state": job},
        "reconciliationStatus": {"lastReconciledSpec": json.dumps(kept), "state": "DEPLOYED"},
        "lifecycleState": lifecycle,
    }


class Operator:
    """Acts on the resource through an API server, with an administrator's rights."""

    def __init__(self, kubeconfig: str) -> None:
        self._client = config.new_client_from_config(kubeconfig, persist_config=False)
        self._objects = client.CustomObjectsApi(self._client)
        self._where = ("flink.apache.org", "v1beta1", NAMESPACE, "flinkdeployments")

    def close(self) -> None:
        self._client.close()

    def deploy(self, made: dict[str, Any]) -> None:
        self._objects.create_namespaced_custom_object(*self._where, copy.deepcopy(made))
        self.reconcile()

    def remove(self) -> None:
        self._objects.delete_namespaced_custom_object(*self._where, NAME)

    def read(self) -> dict[str, Any]:
        found: dict[str, Any] = self._objects.get_namespaced_custom_object(*self._where, NAME)
        return found

    def edit(self, spec: dict[str, Any]) -> None:
        """As a person with kubectl does."""
        self._patch(self._objects.patch_namespaced_custom_object, {"spec": spec})

    def reconcile(self, lifecycle: str = "STABLE", job: str = "RUNNING", error: str | None = None) -> None:
        """Act on the present spec, or report why not."""
        status = {"error": error} if error is not None else {"error": None, **status_of(self.read(), lifecycle, job)}
        self._patch(self._objects.patch_namespaced_custom_object_status, {"status": status})

    def _patch(self, patch: Any, body: dict[str, Any]) -> None:
        patch(*self._where, NAME, body, _content_type="application/merge-patch+json")
