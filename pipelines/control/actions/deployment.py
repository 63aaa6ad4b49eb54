"""The `FlinkDeployment` that deploys an autopilot's job: whether it may be changed now, and by which Kubernetes."""

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, suppress

from flink_client.jobs.running import settings
from flink_client.kubernetes.owner import owner_of
from flink_client.kubernetes.progress import unsettled
from flink_client.kubernetes.reference import parse_reference
from flink_client.kubernetes.refusals import Conflict
from flink_client.kubernetes.resource import FlinkDeployment
from flink_client.kubernetes.scaling import check_changeable, redeploys_for, spec_change
from flink_client.rest.client import FlinkRest
from models.errors import InvalidInput, SluiceError
from models.scaling.control.guard import Hold
from pipelines.apply.kubernetes.applying import ResourceApi
from pipelines.control.actions.intents import IntendedResource
from pipelines.control.request import DeploymentTarget

OpenApi = Callable[[str | None], AbstractContextManager[ResourceApi]]
"""Connects to the API server of a context."""


def open_api(context: str | None) -> AbstractContextManager[ResourceApi]:
    """Connect with the credentials as they are now.

    Raises:
        InvalidInput: there are none that can be used, or Kubernetes' client is not installed.
    """
    try:
        from flink_client.kubernetes.api import KubernetesApi  # takes seconds to import
    except ModuleNotFoundError as error:
        raise InvalidInput(
            f"acting on a FlinkDeployment needs {error.name}, which is not installed; install it with: pip install "
            "'sluice[kubernetes]'"
        ) from error
    return KubernetesApi(context)


class JobDeployment:
    """Of one job. Each use connects by itself, so that renewed credentials are taken up."""

    def __init__(self, target: DeploymentTarget, connect: OpenApi = open_api) -> None:
        self.target, self._connect = target, connect
        self._namespace, self._name = parse_reference(target.reference)
        self._seen: FlinkDeployment | None = None

    def check(self, *, acts: bool) -> None:
        """Check at the begin that the resource can be read and, if the autopilot `acts`, changed; nothing is stored.

        Raises:
            InvalidInput: there is no such resource, or it cannot be changed safely.
            SluiceError: the API server refused, or does not answer.
        """
        with self._connect(self.target.context) as api:
            resource = api.read(self._namespace, self._name)
            check_changeable(resource)
            if acts:
                with suppress(Conflict):  # the operator has written its status meanwhile
                    api.patch(resource, {}, {}, dry_run=True)

    def hold(self, flink_job: str, adaptive: bool) -> Hold | None:
        """Why the resource may not be changed now; None if it may. What is read here, an intent names.

        Args:
            flink_job: Flink's id of the job that is watched.
            adaptive: whether it runs with the adaptive scheduler.
        """
        reference = self.target.reference
        try:
            with self._connect(self.target.context) as api:
                self._seen = seen = api.read(self._namespace, self._name)
            check_changeable(seen)
        except SluiceError as error:
            return Hold("resource", str(error))
        if seen.job_id not in (None, flink_job):
            return Hold(
                "resource",
                f"FlinkDeployment {reference} deploys the job {seen.job_id}, and not {flink_job}, which is watched; name the "
                "FlinkDeployment of that job",
            )
        if (why := redeploys_for(seen, adaptive)) is not None:
            return Hold("resource", f"the operator would redeploy the job, since {why}")
        if (reported := unsettled(seen)) is not None:
            return Hold("resource", f"the operator is not done with FlinkDeployment {reference}: it reports {reported}")
        return None

    def intended(self) -> IntendedResource:
        """The resource as it was read last."""
        assert self._seen is not None
        return IntendedResource(
            reference=self.target.reference,
            context=self.target.context,
            generation=self._seen.generation,
            error=self._seen.error,
        )

    def states(self, tasks: Mapping[str, int]) -> bool:
        """Whether the resource, as it was read last, has these tasks by vertex id already."""
        assert self._seen is not None
        return not spec_change(self._seen, tasks, running={}, size=None, adaptive=True).spec


def checked_owner(rest: FlinkRest, target: DeploymentTarget | None) -> str | None:
    """Compare the FlinkDeployment that is named with what Flink's settings say.

    Returns:
        A remark where a job is to be rescaled through REST alone that a FlinkDeployment deploys.

    Raises:
        InvalidInput: another one deploys this Flink.
    """
    try:
        owner = owner_of(settings(rest))
    except SluiceError:  # it may answer later
        return None
    if owner is None or (target is not None and target.reference == owner):
        return None
    if target is not None:
        raise InvalidInput(
            f"FlinkDeployment {owner} deploys the Flink at {rest.url}, and not {target.reference}; name it"
        )
    return (
        f"FlinkDeployment {owner} deploys this Flink, and is not changed, so the operator undoes rescales when it next "
        f"deploys the job; name it (--kubernetes {owner}) to have them kept"
    )
