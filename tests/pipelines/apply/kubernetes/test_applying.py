"""A plan on a FlinkDeployment, through an API server, and an operator that follows, refuses or lags."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from flink.server import word_count_plan
from flink.steered import SimulatedClock
from flink_client.kubernetes.api import KubernetesApi
from flink_client.kubernetes.refusals import Conflict
from models.errors import InvalidInput, SluiceError
from models.plan.content import Plan
from on_kubernetes.api_server import ApiServer
from on_kubernetes.deployed_resource import CHAIN, NAME, NAMESPACE, OTHER, OVERRIDES, SOURCE, Operator
from on_kubernetes.server import PLANNER, READER, write_kubeconfig
from pipelines.apply.applied import Applied
from pipelines.apply.kubernetes.applying import apply_to_resource, rehearse_on
from pipelines.apply.kubernetes.preparing import ResourcePreparation, prepare_resource, resource_steps
from pipelines.store.plans import PlanStore
from pipelines.store.workspace import Workspace

VERTICES = {"source": SOURCE, "flatmap": CHAIN, "count": CHAIN}
SCALED = f"{CHAIN}:3,{OTHER}:5,{SOURCE}:1"


@pytest.fixture
def plan(tmp_path: Path) -> Plan:
    """One source task and three of the chain."""
    content = word_count_plan({"tm1": {"source": 1, "flatmap": 3, "count": 3}})
    store = PlanStore(Workspace(tmp_path / "workspace"))
    store.publish(content, "2026-01-01T00:00:00Z")
    return store.get("wordcount", 1)


@pytest.fixture
def connect(server: Any, operator: Operator, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Connects with a token; the last connection is closed at the end."""
    opened: list[KubernetesApi] = []

    def connected(token: str) -> KubernetesApi:
        monkeypatch.setenv("KUBECONFIG", str(server.kubeconfig(tmp_path, token)))
        opened.append(KubernetesApi("test"))
        return opened[-1]

    yield connected
    for api in opened:
        api.close()


@pytest.fixture
def api(connect: Callable[[str], KubernetesApi]) -> KubernetesApi:
    """With the rights of the Role in docker/, and no others."""
    return connect(PLANNER)


def prepared(api: KubernetesApi, plan: Plan, redeploy: bool = False) -> ResourcePreparation:
    resource = api.read(NAMESPACE, NAME)
    return prepare_resource(resource, plan, rest=None, vertices=VERTICES, job_file=None, redeploy=redeploy)


def applied(
    api: KubernetesApi, preparation: ResourcePreparation, step: Callable[[], object], said: list[str] | None = None
) -> Applied:
    """Apply within 5 simulated seconds; `step` is what happens each time that the resource is waited for."""
    clock = SimulatedClock()

    def sleep(seconds: float) -> None:
        clock.sleep(seconds)
        step()

    say = (said if said is not None else []).append
    return apply_to_resource(api, preparation, rest=None, timeout_s=5, observe_s=0, say=say, clock=clock, sleep=sleep)


def overrides(operator: Operator) -> str:
    return str(operator.read()["spec"]["flinkConfiguration"][OVERRIDES])


def test_a_rescale_changes_the_overrides_alone_and_follows_the_operator(
    api: KubernetesApi, operator: Operator, plan: Plan
) -> None:
    before, said = operator.read(), []
    states = iter(["DEPLOYED", "STABLE"])
    done = applied(api, prepared(api, plan), lambda: operator.reconcile(next(states)), said)
    assert (done.outcome, done.method, done.resource) == ("applied", "rescale", "streaming/wordcount")
    assert [(c.operators, c.before, c.after) for c in done.changes] == [
        (("source",), None, 1),
        (("flatmap", "count"), 1, 3),
    ]
    after = operator.read()
    assert after["spec"] == before["spec"] | {
        "flinkConfiguration": before["spec"]["flinkConfiguration"] | {OVERRIDES: SCALED}
    }
    assert after["metadata"]["annotations"] == {"team": "search", "sluice/plan": "wordcount@1"}
    assert after["metadata"]["generation"] == before["metadata"]["generation"] + 1
    assert [line.split(",")[0] for line in said[1:]] == [
        "the operator has not taken the change up yet",
        "the operator reports DEPLOYED",
        "the operator reports STABLE",
    ]
    again = applied(api, prepared(api, plan), operator.reconcile)
    assert again.outcome == "unchanged" and operator.read()["metadata"]["generation"] == after["metadata"]["generation"]


def test_a_rehearsal_has_the_server_check_the_change_and_stores_nothing(
    api: KubernetesApi, operator: Operator, plan: Plan
) -> None:
    before, preparation = operator.read(), prepared(api, plan)
    rehearse_on(api, preparation)
    assert operator.read() == before
    version = before["metadata"]["resourceVersion"]
    assert resource_steps(preparation, 120) == [
        f"patch FlinkDeployment streaming/wordcount if it is still at resourceVersion {version}: flinkConfiguration."
        f"{OVERRIDES}: {CHAIN}:1,{OTHER}:5 -> {SCALED}",
        "the operator scales the running job in place",
        "wait until the operator reports STABLE and the job runs; after 120 s restore the present spec",
    ]


def test_a_change_by_somebody_else_meanwhile_is_not_overwritten(
    api: KubernetesApi, operator: Operator, plan: Plan
) -> None:
    preparation = prepared(api, plan)
    operator.edit({"job": {"parallelism": 2}})
    edited = operator.read()
    with pytest.raises(Conflict, match="was changed by somebody else meanwhile, so nothing was written"):
        applied(api, preparation, operator.reconcile)
    assert operator.read() == edited


def test_an_operator_that_fails_gets_the_former_spec_back_without_a_removed_override(
    api: KubernetesApi, operator: Operator, plan: Plan
) -> None:
    steps = iter([lambda: operator.reconcile("FAILED", "FAILING"), operator.reconcile])
    done = applied(api, prepared(api, plan), lambda: next(steps)())
    assert done.outcome == "rolled-back" and "the operator reports FAILED, and the job is failing" in done.reason
    assert overrides(operator) == f"{CHAIN}:1,{OTHER}:5"
    assert operator.read()["metadata"]["annotations"] == {"team": "search"}


def test_an_operator_that_refuses_the_spec_is_quoted(api: KubernetesApi, operator: Operator, plan: Plan) -> None:
    refusal = '{"type": "ReconciliationException", "message": "parallelism is too high"}'
    steps = iter([lambda: operator.reconcile(error=refusal), operator.reconcile])
    done = applied(api, prepared(api, plan), lambda: next(steps)())
    assert done.outcome == "rolled-back" and "parallelism is too high" in done.reason


def test_an_operator_that_does_not_answer_in_time_leaves_a_failed_application_and_the_former_spec(
    api: KubernetesApi, operator: Operator, plan: Plan
) -> None:
    done = applied(api, prepared(api, plan), lambda: None)
    assert done.outcome == "failed"
    assert "has not taken the change up yet after 5 s" in done.reason and "after 60 s" in done.reason
    assert overrides(operator) == f"{CHAIN}:1,{OTHER}:5"


def test_a_job_that_runs_but_is_not_called_stable_is_applied_with_a_remark(
    api: KubernetesApi, operator: Operator, plan: Plan
) -> None:
    done = applied(api, prepared(api, plan), lambda: operator.reconcile("DEPLOYED"))
    assert done.outcome == "applied" and "the operator did not call it stable within 5 s" in done.advice


def test_a_later_change_by_somebody_else_is_left_as_it_is(api: KubernetesApi, operator: Operator, plan: Plan) -> None:
    theirs = {"flinkConfiguration": {OVERRIDES: f"{CHAIN}:9"}}
    done = applied(api, prepared(api, plan), lambda: operator.edit(theirs))
    assert done.outcome == "failed" and "changed again by somebody else" in done.reason
    assert overrides(operator) == f"{CHAIN}:9"


def test_a_stopped_application_writes_the_former_spec_again(api: KubernetesApi, operator: Operator, plan: Plan) -> None:
    def stopped() -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        applied(api, prepared(api, plan), stopped)
    assert overrides(operator) == f"{CHAIN}:1,{OTHER}:5"


def test_a_missing_right_a_wrong_token_and_a_missing_resource_are_one_sentence_and_change_nothing(
    connect: Callable[[str], KubernetesApi], operator: Operator, plan: Plan
) -> None:
    before, reader = operator.read(), connect(READER)
    preparation = prepared(reader, plan)
    for act in (lambda: rehearse_on(reader, preparation), lambda: applied(reader, preparation, operator.reconcile)):
        with pytest.raises(
            SluiceError, match=r"the right to patch flinkdeployments.flink.apache.org in namespace"
        ) as no:
            act()
        assert "docker/kubernetes/role.yaml" in str(no.value) and "\n" not in str(no.value)
    with pytest.raises(InvalidInput, match="there is no FlinkDeployment streaming/missing on"):
        reader.read(NAMESPACE, "missing")
    with pytest.raises(SluiceError, match=r"does not accept the credentials \(401") as stale:
        connect("stale").read(NAMESPACE, NAME)
    assert "stale" not in str(stale.value), "no token in a message"
    assert operator.read() == before


def test_the_version_is_read_with_a_token_that_is_accepted(connect: Callable[[str], KubernetesApi]) -> None:
    """The real server's rules let these accounts read FlinkDeployments alone."""
    assert connect(PLANNER).version() in ("v1.33.1", None)
    with pytest.raises(SluiceError, match=r"does not accept the credentials \(401"):
        connect("stale").version()


def test_the_role_allows_no_more_than_to_read_and_to_patch(connect: Callable[[str], Any], operator: Operator) -> None:
    objects = connect(PLANNER)._objects
    where = ("flink.apache.org", "v1beta1", NAMESPACE, "flinkdeployments")
    status = {"_content_type": "application/merge-patch+json"}
    for act in (
        lambda: objects.delete_namespaced_custom_object(*where, NAME),
        lambda: objects.create_namespaced_custom_object(*where, {"metadata": {"name": "other"}}),
        lambda: objects.patch_namespaced_custom_object_status(*where, NAME, {"status": {}}, **status),
    ):
        with pytest.raises(Exception, match="403"):
            act()


def test_sizes_are_written_only_if_a_redeployment_is_accepted(
    api: KubernetesApi, operator: Operator, plan: Plan
) -> None:
    kept = prepared(api, plan)
    assert kept.method == "rescale" and any("--redeploy writes it" in one for one in kept.advice)
    redeployed = prepared(api, plan, redeploy=True)
    assert redeployed.method == "redeploy" and "(upgradeMode: savepoint), since a change of" in "".join(
        resource_steps(redeployed, 120)
    )
    done = applied(api, redeployed, operator.reconcile)
    assert done.outcome == "applied"
    assert operator.read()["spec"]["taskManager"]["resource"]["memory"] == f"{plan.memory_mb:.0f}m"


def test_a_change_that_takes_a_redeployment_is_refused_without_leave(
    api: KubernetesApi, operator: Operator, plan: Plan
) -> None:
    operator.edit({"flinkConfiguration": {"jobmanager.scheduler": None}})
    with pytest.raises(SluiceError, match="the operator is not done with FlinkDeployment streaming/wordcount"):
        prepared(api, plan)
    operator.reconcile()
    with pytest.raises(
        InvalidInput, match=r"would redeploy the job, since scaling in place takes jobmanager.scheduler"
    ):
        prepared(api, plan)
    assert prepared(api, plan, redeploy=True).method == "redeploy"


def test_no_redeployment_where_flink_ignores_the_overrides_of_a_job_that_starts(
    api: KubernetesApi, operator: Operator, plan: Plan
) -> None:
    operator.edit({"flinkVersion": "v2_3"})
    operator.reconcile()
    with pytest.raises(InvalidInput, match=r"Flink v2_3 ignores pipeline\.jobvertex.* no --redeploy"):
        prepared(api, plan, redeploy=True)
    assert prepared(api, plan).method == "rescale"


@pytest.mark.long
@pytest.mark.parametrize("server", ["real"], indirect=True)
def test_the_server_refuses_a_field_that_the_operators_definition_does_not_name(
    api: KubernetesApi, operator: Operator
) -> None:
    hidden = {"containers": [{"name": "main", "env": [{"name": "PASSWORD", "value": "s3cret"}]}]}
    operator.edit({"podTemplate": {"spec": hidden}})
    before, resource = operator.read(), api.read(NAMESPACE, NAME)
    for spec, fault in (
        ({"taskManager": {"resources": {"limits": {"memory": "4Gi"}}}}, "unknown field"),
        ({"flinkConfiguration": {"taskmanager.numberOfTaskSlots": 4}}, "must be of type string"),
    ):
        with pytest.raises(InvalidInput, match=rf"would not be valid \(4\d\d: .*{fault}.*nothing was changed") as no:
            api.patch(resource, spec, {})
        assert "s3cret" not in str(no.value)
    assert operator.read() == before


@pytest.mark.long
@pytest.mark.parametrize("server", ["real"], indirect=True)
def test_a_server_of_another_authority_is_not_trusted(
    server: ApiServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KUBECONFIG", str(write_kubeconfig(tmp_path, server.url, PLANNER)))
    with KubernetesApi() as api, pytest.raises(SluiceError, match="is of no authority that is trusted here") as no:
        api.read(NAMESPACE, NAME)
    assert "certificate-authority of the cluster in the kubeconfig" in str(no.value) and "\n" not in str(no.value)
