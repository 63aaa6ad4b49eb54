"""The operator's own classes decide what a change is, and its published definition whether it is valid."""

import copy
import zipfile
from functools import cache
from typing import Any

import pytest
import yaml
from jsonschema import Draft202012Validator

from flink_client.kubernetes.resource import read_resource
from flink_client.kubernetes.scaling import SpecChange, TaskManagerSize, spec_change
from on_kubernetes.deployed_resource import CHAIN, JOB_ID, OVERRIDES, SOURCE, document, settled
from on_kubernetes.operators_verdict import Document, operator_jars, verdicts
from on_kubernetes.server import merge_patched

LARGER = TaskManagerSize(count=3, slots=8, memory_mb=4096, cores=2.5)

pytestmark = pytest.mark.slow


def changed(made: Document, size: TaskManagerSize | None = None) -> tuple[SpecChange, Document]:
    resource = settled(made)
    change = spec_change(resource, {SOURCE: 1, CHAIN: 3}, running={SOURCE: 2}, size=size, adaptive=None)
    after = copy.deepcopy(made)
    after["spec"] = merge_patched(after["spec"], change.spec)
    return change, after


@cache
def definition() -> Document:
    """The schema of a FlinkDeployment; as the API server does in strict validation, fields that it does not name are faults."""
    with zipfile.ZipFile(next(operator_jars().glob("flink-kubernetes-operator-api-*.jar"))) as jar:
        crd = yaml.load(jar.read("META-INF/fabric8/flinkdeployments.flink.apache.org-v1.yml"), Loader=yaml.CSafeLoader)
    schema: Document = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    schema["properties"] |= {name: {} for name in ("apiVersion", "kind", "metadata")}
    _close(schema)
    return schema


def _close(schema: Any) -> None:
    if isinstance(schema, dict):
        if "properties" in schema and not schema.get("x-kubernetes-preserve-unknown-fields"):
            schema.setdefault("additionalProperties", False)
        for part in schema.values():
            _close(part)


def faults(made: Document) -> list[str]:
    return [error.message for error in Draft202012Validator(definition()).iter_errors(made)]


def test_the_operator_scales_exactly_where_it_is_said_to_scale_in_place_and_redeploys_for_all_else() -> None:
    native, standalone = document(), document(mode="standalone")
    first, again = document(flinkConfiguration={"jobmanager.scheduler": "adaptive"}), document()
    again["spec"]["flinkConfiguration"][OVERRIDES] = f"{SOURCE}:1,{CHAIN}:3"
    cases = [(native, None), (first, None), (standalone, None), (native, LARGER), (again, None)]
    made = [(before, *changed(before, size)) for before, size in cases]
    undone = copy.deepcopy(made[0][2])
    undone["spec"] = merge_patched(undone["spec"], made[0][1].undo)
    found = verdicts(*((before, after) for before, _, after in made), (made[0][2], undone))
    assert [kind for kind, _ in found] == ["SCALE", "SCALE", "UPGRADE", "UPGRADE", "IGNORE", "SCALE"]
    in_place = [change.redeploys is None for _, change, _ in made]
    assert in_place == [True, True, False, False, True], "nothing differs in the last one"


def test_the_generation_is_read_from_what_the_operator_keeps() -> None:
    made = document()
    made["metadata"]["generation"] = 7
    ((_, kept),) = verdicts((made, made))
    made["metadata"]["resourceVersion"] = "1"
    made["status"] = {"jobStatus": {"jobId": JOB_ID}, "reconciliationStatus": {"lastReconciledSpec": kept}}
    resource = read_resource(made)
    assert (resource.reconciled_generation, resource.job_id) == (7, JOB_ID)


def test_what_is_written_is_valid_by_the_published_definition() -> None:
    for made in (document(), document(mode="standalone"), document(taskManager=None)):
        for size in (None, LARGER):
            change, after = changed(made, size)
            undone = after | {"spec": merge_patched(after["spec"], change.undo)}
            assert faults(after) == faults(undone) == [], change.spec
    assert faults(document(taskManager={"memory": "2g"})) != [], "a field that the definition does not name"
    assert faults(document(flinkConfiguration={"taskmanager.numberOfTaskSlots": 4})) != [], "a number in a map of text"
