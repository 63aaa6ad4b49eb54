"""The Role for applying plans on Kubernetes has the form of its kind, and allows no more than the command uses."""

from pathlib import Path
from typing import Any

import yaml

from flink_client.kubernetes.api import GROUP, PLURAL

ROLE = Path(__file__).parents[2] / "docker" / "kubernetes" / "role.yaml"


def documents() -> dict[str, dict[str, Any]]:
    return {document["kind"]: document for document in yaml.safe_load_all(ROLE.read_text())}


def test_the_role_allows_to_read_and_to_patch_flink_deployments() -> None:
    role = documents()["Role"]
    assert role["apiVersion"] == "rbac.authorization.k8s.io/v1"
    assert role["rules"] == [{"apiGroups": [GROUP], "resources": [PLURAL], "verbs": ["get", "patch"]}]


def test_it_is_bound_to_the_service_account_of_the_same_namespace() -> None:
    by_kind = documents()
    binding, account, role = (by_kind[kind] for kind in ("RoleBinding", "ServiceAccount", "Role"))
    assert binding["roleRef"] == {
        "apiGroup": "rbac.authorization.k8s.io",
        "kind": "Role",
        "name": role["metadata"]["name"],
    }
    named = {
        "kind": "ServiceAccount",
        "name": account["metadata"]["name"],
        "namespace": account["metadata"]["namespace"],
    }
    assert binding["subjects"] == [named]
    assert {document["metadata"]["namespace"] for document in by_kind.values()} == {named["namespace"]}
