"""Which FlinkDeployment deploys a Flink, by the settings that the operator gives it."""

from flink_client.kubernetes.owner import owner_of

OWNER = "kubernetes.jobmanager.owner.reference"
OTHERS = "blockOwnerDeletion:true,apiVersion:flink.apache.org/v1beta1,kind:FlinkDeployment,uid:7f-1"


def test_the_owner_is_read_from_the_reference_and_the_namespace() -> None:
    settings = {OWNER: f"{OTHERS},name:word-count,controller:false", "kubernetes.namespace": "streaming"}
    assert owner_of(settings) == "streaming/word-count"
    quoted = {OWNER: f"apiVersion:v1,kind:Pod,name:other;{OTHERS},name:'q5'"}
    assert owner_of(quoted) == "default/q5"
    yaml = {
        OWNER: "[{name: other, kind: Pod}, {name: q5, kind: FlinkDeployment, apiVersion: flink.apache.org/v1beta1}]"
    }
    assert owner_of(yaml) == "default/q5"


def test_a_flink_without_such_an_owner_has_none() -> None:
    assert owner_of({"kubernetes.namespace": "streaming"}) is None
    assert owner_of({OWNER: "apiVersion:v1,kind:Pod,name:other"}) is None
