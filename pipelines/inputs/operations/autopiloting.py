"""Whether and how an autopilot acts on a running job: the block `operations.autopilot` of its file."""

from typing import Annotated, Literal

from pydantic import Field, model_validator

from flink_client.address import Address
from flink_client.kubernetes.reference import DeploymentReference
from models.scaling.control.limits import ControlLimits
from models.schema import Format, Name, Positive


class Autopiloting(Format):
    """How a scaling policy acts on the running job while Airflow, or `sluice autopilot all`, runs."""

    mode: Literal["dry-run", "approved", "alone"] = Field(
        "dry-run",
        description="'dry-run': it records what it would do, and changes nothing; 'approved': the same until a person in "
        "Airflow lets it act; 'alone': it acts.",
    )
    flink: Address = Field(description="REST address of the cluster that runs the job, or connection:NAME.")
    job: str | None = Field(
        None, min_length=1, max_length=250, description="Flink's name or id of the job; default: the name of this job."
    )
    kubernetes: DeploymentReference | None = Field(
        None,
        description="NAMESPACE/NAME of the FlinkDeployment that deploys the job, to change through the Kubernetes API; "
        "default: the job is rescaled through Flink alone.",
    )
    context: str | None = Field(
        None,
        min_length=1,
        max_length=250,
        description="With 'kubernetes': context of the kubeconfig, or connection:NAME; default: its current one or, without a "
        "kubeconfig, the pod's service account.",
    )
    through: Literal["operator", "rest"] = Field(
        "operator",
        description="With 'kubernetes': 'operator': the tasks are written into the FlinkDeployment, and the operator rescales "
        "the job; 'rest': Flink rescales it, and the tasks are written there afterwards, so that the operator keeps them.",
    )
    policy: str = Field("sluice", min_length=1, description="Name of the policy.")
    settings: dict[str, str | float | bool] = Field(
        default_factory=dict, description="Settings of the policy that differ from its defaults."
    )
    limits: ControlLimits = Field(default_factory=ControlLimits, description="What it may do at most.")
    kafka: str | None = Field(
        None,
        min_length=1,
        description="HOST:PORT of brokers of the topics that it reads, or connection:NAME, to count what waits there; default: "
        "as its sources report it.",
    )
    program: Name | None = Field(
        None, description="File beside this one with the program to restart, where a change takes a restart."
    )
    token_variable: Annotated[str, Field(pattern=r"^[A-Z][A-Z0-9_]*$", max_length=120)] | None = Field(
        None, description="Environment variable that holds a bearer token, if Flink requires one."
    )
    timeout_s: Positive = Field(60.0, le=3600, description="Time for a rescale to come about, seconds.")
    approval_s: Positive = Field(86400.0, description="How long to wait for an approval, seconds.")

    @model_validator(mode="after")
    def _check(self) -> "Autopiloting":
        if self.kubernetes is None and (self.context is not None or self.through != "operator"):
            raise ValueError(
                "'context' and 'through' are for a FlinkDeployment; name it as 'kubernetes': NAMESPACE/NAME"
            )
        if self.kubernetes is not None and self.program is not None:
            raise ValueError("'program' is for jobs without 'kubernetes', whose operator restarts a job; leave it out")
        return self
