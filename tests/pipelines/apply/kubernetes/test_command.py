"""`sluice plans apply --kubernetes`, against servers that answer as an API server and as Flink do."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from answering.tls_proxy import Issuer, TlsProxy, certificate
from flink.server import FakeFlink, word_count_plan
from flink_client.overrides import parsed_overrides
from flink_client.rest.jobs import resource_requirements
from on_kubernetes.deployed_resource import CHAIN, JOB_ID, OTHER, OVERRIDES, SOURCE, Operator, document, status_of
from on_kubernetes.server import ADMIN, PLANNER, FakeKubernetes
from pipelines.apply.applied import Applied
from pipelines.apply.record import recorded
from pipelines.cli import run
from pipelines.store.plans import PlanStore
from pipelines.store.workspace import Workspace

Call = Callable[..., tuple[int, str, str]]


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    """A plan with one source task and three of the chain."""
    workspace = Workspace(tmp_path)
    plan = word_count_plan({"tm1": {"source": 1, "flatmap": 3, "count": 3}})
    PlanStore(workspace).publish(plan, "2026-01-01T00:00:00Z")
    return workspace


@pytest.fixture
def flink() -> Iterator[FakeFlink]:
    with FakeFlink() as made:
        yield made


@pytest.fixture
def kubernetes(flink: FakeFlink, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeKubernetes]:
    """Its operator scales in place as the real one does: through Flink's resource requirements."""

    def scaled(answer: dict[str, Any]) -> dict[str, Any]:
        tasks = parsed_overrides(answer["spec"]["flinkConfiguration"][OVERRIDES], "test")
        tasks.pop(OTHER)  # no vertex of this job
        httpx.put(f"{flink.url}/jobs/{JOB_ID}/resource-requirements", json=resource_requirements(tasks))
        return status_of(answer)

    with FakeKubernetes(scaled) as made:
        Operator(str(made.kubeconfig(tmp_path, ADMIN))).deploy(document())
        monkeypatch.setenv("KUBECONFIG", str(made.kubeconfig(tmp_path, PLANNER)))
        yield made


@pytest.fixture
def sluice(workspace: Workspace, kubernetes: FakeKubernetes, capsys: pytest.CaptureFixture[str]) -> Call:
    """Applies the plan; returns exit code, standard output and standard error."""

    def call(*arguments: str) -> tuple[int, str, str]:
        command = ["plans", "apply", "wordcount", "--workspace", workspace.url, "--observe", "0", "--timeout", "5"]
        code = run([*command, *arguments])
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return call


def test_a_plan_goes_into_the_resource_and_is_verified_on_its_flink(
    sluice: Call, flink: FakeFlink, kubernetes: FakeKubernetes, workspace: Workspace
) -> None:
    where = ("--kubernetes", "streaming/wordcount", "--context", "test", "--flink", flink.url)
    code, out, err = sluice(*where, "--json")
    assert code == 0, err
    applied = Applied.model_validate_json(out)
    assert (applied.outcome, applied.method, applied.resource) == ("applied", "rescale", "streaming/wordcount")
    assert [(c.name, c.before, c.after) for c in applied.changes] == [
        ("Source: source", 1, 1),
        ("flatmap -> count", 1, 3),
    ]
    spec = kubernetes.objects["streaming/wordcount"]["spec"]
    assert spec["flinkConfiguration"][OVERRIDES] == f"{CHAIN}:3,{OTHER}:5,{SOURCE}:1"
    assert recorded(workspace, "wordcount", 1) == [applied]
    assert "patched FlinkDeployment streaming/wordcount, generation 2" in err and PLANNER not in err
    code, out, _ = sluice(*where)
    said = " ".join(out.split())
    assert code == 0 and "wordcount@1 unchanged: FlinkDeployment streaming/wordcount states the plan already" in said


def test_a_rehearsal_prints_the_steps_and_changes_nothing(
    sluice: Call, flink: FakeFlink, kubernetes: FakeKubernetes, workspace: Workspace
) -> None:
    before = json.dumps(kubernetes.objects)
    where = ("--kubernetes", "streaming/wordcount", "--flink", flink.url, "--dry-run")
    code, out, err = sluice(*where)
    assert code == 0, err
    assert "2. the operator scales the running job in place" in out and "the API server accepts the change" in out
    code, out, _ = sluice(*where, "--json")
    found = json.loads(out)
    assert found["patch"] == {"flinkConfiguration": {OVERRIDES: f"{CHAIN}:3,{OTHER}:5,{SOURCE}:1"}}
    assert (found["method"], found["redeploys"], len(found["steps"])) == ("rescale", None, 3)
    assert json.dumps(kubernetes.objects) == before and recorded(workspace, "wordcount", 1) == []


@pytest.mark.parametrize(
    ("arguments", "code", "reason"),
    [
        ([], 2, "give --flink URL, or --kubernetes NAMESPACE/NAME"),
        (["--redeploy", "--flink", "http://127.0.0.1:1"], 2, "which --context and --redeploy are for"),
        (["--kubernetes", "wordcount"], 2, "--kubernetes must be NAMESPACE/NAME"),
        (["--kubernetes", "streaming/Word_Count"], 2, "--kubernetes must be NAMESPACE/NAME"),
        (["--kubernetes", "streaming/wordcount"], 2, "ids of the vertices are not known; give --flink URL"),
        (["--kubernetes", "streaming/wordcount", "--context", "prod"], 2, "no credentials for Kubernetes"),
        (["--kubernetes", "streaming/other"], 2, "there is no FlinkDeployment streaming/other"),
        (["--kubernetes", "streaming/wordcount", "--flink", "jobmanager"], 2, "--flink must be the address"),
    ],
)
def test_unusable_arguments_are_named(sluice: Call, arguments: list[str], code: int, reason: str) -> None:
    found, out, err = sluice(*arguments)
    assert (found, out) == (code, "") and reason in " ".join(err.split())


def test_a_server_that_does_not_answer_is_one_sentence(
    sluice: Call, kubernetes: FakeKubernetes, tmp_path: Path
) -> None:
    kubernetes.kubeconfig(tmp_path, PLANNER, server="http://127.0.0.1:9")
    code, out, err = sluice("--kubernetes", "streaming/wordcount")
    assert (code, out) == (1, "") and "the API server http://127.0.0.1:9 does not answer" in " ".join(err.split())


def test_a_flink_that_is_not_as_its_resource_states_is_named(
    sluice: Call, flink: FakeFlink, kubernetes: FakeKubernetes
) -> None:
    stated = kubernetes.objects["streaming/wordcount"]["spec"]["flinkConfiguration"]
    stated[OVERRIDES] = f"{SOURCE}:1,{CHAIN}:3"
    code, out, err = sluice("--kubernetes", "streaming/wordcount", "--flink", flink.url, "--json")
    assert code == 0, err
    applied = Applied.model_validate_json(out)
    assert applied.outcome == "unchanged"
    assert "Flink runs 'flatmap -> count' with 1 task, not 3 as the resource states" in " ".join(applied.advice)


@pytest.mark.slow
def test_a_plan_that_makes_the_job_worse_is_rolled_back_in_place(
    sluice: Call, flink: FakeFlink, kubernetes: FakeKubernetes
) -> None:
    def slower() -> None:
        flink.emitted_per_s, flink.backpressure, flink.busyness = 500.0, 0.9, 0.1

    flink.after_put = slower
    code, out, err = sluice("--kubernetes", "streaming/wordcount", "--flink", flink.url, "--observe", "1", "--json")
    applied = Applied.model_validate_json(out)
    assert (code, applied.outcome) == (1, "rolled-back"), err
    assert "the plan made it worse: 500 records/s after 1,500 before" in applied.reason
    spec = kubernetes.objects["streaming/wordcount"]["spec"]
    assert spec["flinkConfiguration"][OVERRIDES] == f"{CHAIN}:1,{OTHER}:5,{SOURCE}:1"


@pytest.mark.parametrize("way", ["token", "oauth"])
def test_a_connection_takes_the_place_of_the_kubeconfig(
    sluice: Call,
    flink: FakeFlink,
    kubernetes: FakeKubernetes,
    workspace: Workspace,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    way: str,
) -> None:
    """Through TLS, by a token of the connection or of an authorization server, whose tokens this API server accepts."""
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "none"))
    made = certificate(tmp_path / "certificates")
    wanted = {"token": "s3cr3t", "oauth": "token-1"}[way]
    with TlsProxy(kubernetes.url, made, wanted) as proxy, Issuer(made, "sluice", "s3cr3t") as issuer:
        proxy.passed_as = f"Bearer {PLANNER}"
        fields: dict[str, Any] = {"conn_type": "sluice_kubernetes", "host": proxy.url, "password": "s3cr3t"}
        extra = {"ca_file": str(made.authority)}
        if way == "oauth":
            fields |= {"login": "sluice"}
            extra |= {"token_url": f"{issuer.url}/token"}
        monkeypatch.setenv("AIRFLOW_CONN_MY_KUBERNETES", json.dumps(fields | {"extra": extra}))
        where = ("--kubernetes", "streaming/wordcount", "--context", "connection:my_kubernetes", "--flink", flink.url)
        code, out, err = sluice(*where, "--json")
        assert code == 0, err
        assert Applied.model_validate_json(out).outcome == "applied"
        proxy.wanted = "Bearer another"
        code, _, refused = sluice(*where)
        assert code == 1 and f"{proxy.url} (connection my_kubernetes) does not accept the credentials (401" in refused
    for text in (out, err, refused, *(file.read_text() for file in (tmp_path / "plans").rglob("*.json"))):
        assert "s3cr3t" not in text and "token-1" not in text
    assert recorded(workspace, "wordcount", 1)[0].outcome == "applied"


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        (None, "there is no connection 'my_kubernetes'; add it in Airflow"),
        ({"login": "ann", "password": "s3cr3t"}, "Kubernetes takes no password"),
        ({"extra": {"client_certificate": "c.pem", "client_key_password": "s3cr3t"}}, "takes a key without a password"),
        ({"extra": {"ca_file": "/none.pem"}}, "the field 'ca_file' of the connection my_kubernetes must name a file"),
        ({"extra": {"namespace": "x"}}, "has extra fields that are not known: 'namespace'"),
    ],
)
def test_a_connection_that_cannot_be_used_is_named_without_its_secrets(
    sluice: Call,
    kubernetes: FakeKubernetes,
    monkeypatch: pytest.MonkeyPatch,
    fields: dict[str, Any] | None,
    reason: str,
) -> None:
    if fields is not None:
        given = {"conn_type": "sluice_kubernetes", "host": kubernetes.url, **fields}
        monkeypatch.setenv("AIRFLOW_CONN_MY_KUBERNETES", json.dumps(given))
    code, out, err = sluice("--kubernetes", "streaming/wordcount", "--context", "connection:my_kubernetes")
    assert (code, out) == (2, "") and reason in " ".join(err.split()) and "s3cr3t" not in err
