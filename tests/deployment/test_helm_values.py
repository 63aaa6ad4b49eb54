"""The values for the charts of Airflow and of Flink's operator: known to the charts, without secrets, with few rights."""

import ast
import json
import re
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from flink_client.kubernetes.api import GROUP, PLURAL
from pipelines.store.workspace import URL_VARIABLE

KUBERNETES = Path("docker", "kubernetes")
CHARTS = ("airflow", "flink-kubernetes-operator")
VERBS = {"get": "get", "list": "list", "create": "create", "patch": "patch", "replace": "update", "delete": "delete"}
"""Of the methods of Kubernetes' client -> as a Role names them."""


def values(root: Path, chart: str) -> Any:
    return yaml.safe_load((root / KUBERNETES / f"{chart}-values.yaml").read_text())


def documents(root: Path, name: str) -> dict[str, dict[str, Any]]:
    return {one["kind"]: one for one in yaml.safe_load_all((root / KUBERNETES / name).read_text())}


@pytest.mark.parametrize("chart", CHARTS)
def test_the_chart_knows_every_value(root: Path, chart: str) -> None:
    schema = json.loads((root / "tests/data/helm" / f"{chart}-values.schema.json").read_text())
    jsonschema.Draft7Validator.check_schema(schema)
    jsonschema.validate(values(root, chart), schema)


def test_airflow_runs_sluices_image_as_it_is_built(root: Path) -> None:
    given, built = values(root, "airflow"), (root / "docker" / "Dockerfile").read_text()
    for name in ("dags_folder", "plugins_folder"):
        assert f"AIRFLOW__CORE__{name.upper()}={given['config']['core'][name]} " in built
    assert f"AIRFLOW_HOME={given['airflowHome']} " in built
    (mount,) = given["volumeMounts"]
    assert f"{URL_VARIABLE}={mount['mountPath']}\n" in built
    assert {one["name"]: one["value"] for one in given["env"]}[URL_VARIABLE] == mount["mountPath"]
    locked = re.search(r'name = "apache-airflow"\nversion = "([^"]+)"', (root / "uv.lock").read_text())
    assert locked is not None and given["airflowVersion"] == locked[1]
    version = re.search(r'^version = "([^"]+)"', (root / "pyproject.toml").read_text(), re.MULTILINE)
    assert version is not None and given["images"]["airflow"]["tag"] == version[1]


def test_airflow_has_the_settings_of_every_deployment(root: Path) -> None:
    given = values(root, "airflow")
    lines = (root / "docker" / "airflow.env").read_text().splitlines()
    shared = dict(line.split("=", 1) for line in lines if line and not line.startswith("#"))
    there = {one["name"]: one["value"] for one in given["env"]}
    there |= {
        f"AIRFLOW__{section}__{name}".upper(): value
        for section, settings in given["config"].items()
        for name, value in settings.items()
    }
    there["AIRFLOW__CORE__EXECUTOR"] = given["executor"]
    # MLflow's server is not one of the chart's.
    assert {name: there.get(name) for name in shared} == shared | {"MLFLOW_SERVER_ENABLE_JOB_EXECUTION": None}


def test_secrets_are_named_and_not_written_down(root: Path) -> None:
    given = values(root, "airflow")
    assert all(given[name] for name in ("fernetKeySecretName", "apiSecretKeySecretName", "jwtSecretName"))
    assert given["data"] == {"metadataSecretName": "sluice-airflow-database"}
    (connections,) = yaml.safe_load(given["extraEnvFrom"])
    assert connections == {"secretRef": {"name": "sluice-connections"}}
    assert given["webserver"]["defaultUser"] == {"enabled": False}, "its password is in the chart"
    named = {*re.findall(r"sluice-[a-z-]+", (root / "docs/how-to/deploy.md").read_text())}
    assert {given["fernetKeySecretName"], given["apiSecretKeySecretName"], given["jwtSecretName"]} <= named
    assert {"sluice-airflow-database", "sluice-connections", "sluice-workspace"} <= named


def test_the_pods_that_act_on_jobs_have_the_bound_account_and_no_other_pod_has_a_token(root: Path) -> None:
    given, bound = values(root, "airflow"), documents(root, "airflow-binding.yaml")
    account = bound["ServiceAccount"]["metadata"]
    for component in ("scheduler", "triggerer"):
        assert given[component]["serviceAccount"] == {"create": False, "name": account["name"]}
    for component in ("apiServer", "dagProcessor"):
        assert given[component]["serviceAccount"] == {"automountServiceAccountToken": False}
    assert given["triggerer"]["enabled"] is True
    assert given["allowPodLaunching"] is False
    role, binding = documents(root, "role.yaml")["Role"], bound["RoleBinding"]
    assert binding["roleRef"] == {
        "apiGroup": "rbac.authorization.k8s.io",
        "kind": "Role",
        "name": role["metadata"]["name"],
    }
    assert binding["metadata"]["namespace"] == role["metadata"]["namespace"], "a Role is of its namespace"
    assert binding["subjects"] == [{"kind": "ServiceAccount", **account}]
    assert role["metadata"]["namespace"] in values(root, "flink-kubernetes-operator")["watchNamespaces"]


def test_the_role_has_each_verb_that_the_code_uses_and_no_other(root: Path) -> None:
    """Of FlinkDeployments; the code reaches them through one class of Kubernetes' client."""
    used, classes = set(), set()
    files = [file for room in ("flink_client", "pipelines", "plugins") for file in (root / room).rglob("*.py")]
    calling = [
        text for text in map(Path.read_text, files) if re.search("^(from|import) kubernetes", text, re.MULTILINE)
    ]
    assert calling
    for node in (node for text in calling for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Attribute)):
        if found := re.fullmatch(r"([a-z]+)_(?:namespaced|cluster)_custom_object(\w*)", node.attr):
            used.add((VERBS[found[1]], f"{PLURAL}{found[2].replace('_', '/')}"))
        if re.fullmatch(r"[A-Z]\w*Api", node.attr):
            classes.add(node.attr)
    assert classes <= {"CustomObjectsApi", "VersionApi"}, "what else is called needs rules of its own"
    (rule,) = documents(root, "role.yaml")["Role"]["rules"]
    assert rule["apiGroups"] == [GROUP]
    assert used == {(verb, resource) for verb in rule["verbs"] for resource in rule["resources"]}


def test_the_operators_defaults_let_plans_be_applied_in_place(root: Path) -> None:
    settings = yaml.safe_load(values(root, "flink-kubernetes-operator")["defaultConfiguration"]["flink-conf.yaml"])
    assert settings["jobmanager.scheduler"] == "adaptive"
    assert settings["kubernetes.operator.job.upgrade.inplace-scaling.enabled"] is True
    assert settings["job.autoscaler.enabled"] is False
