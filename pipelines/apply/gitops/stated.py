"""The plan that the resource in a repository states: the version that it names, and its tasks."""

from collections.abc import Mapping

from pydantic import Field
from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError

from flink_client.kubernetes.resource import read_resource
from models.errors import InvalidInput, SluiceError
from models.plan.content import Plan
from models.schema import Format, PositiveInt
from pipelines.apply.export import ANNOTATION, annotations, parallelism_of
from pipelines.apply.gitops.manifest import chosen_deployment


class StatedPlan(Format):
    """What a FlinkDeployment, or a patch of one, states of a plan."""

    plan: str | None = Field(description="JOB@VERSION, of its annotation sluice/plan; null where it has none.")
    tasks: dict[str, PositiveInt] = Field(description="Tasks by Flink's vertex id, as it overrides them.")

    def includes(self, wanted: "StatedPlan") -> bool:
        """Whether it names that plan and has its tasks; it may override those of other vertices, too."""
        return self.plan == wanted.plan and wanted.tasks.items() <= self.tasks.items()


def plan_to_state(plan: Plan, vertices: Mapping[str, str]) -> StatedPlan:
    """What the export of a plan states.

    Args:
        vertices: vertex id by operator.
    """
    return StatedPlan(plan=annotations(plan)[ANNOTATION], tasks=parallelism_of(plan, vertices))


def stated_in(text: str | None, job: str, where: str) -> StatedPlan | None:
    """What a file states; None where there is no file.

    Args:
        job: the plan's, which says which of several FlinkDeployments is meant.
        where: name of the file, for errors.

    Raises:
        InvalidInput: it cannot be read, or has no such FlinkDeployment.
    """
    if text is None:
        return None
    try:
        documents = list(YAML(typ="safe", pure=True).load_all(text))
    except YAMLError as error:
        raise InvalidInput(f"{where} is no YAML: {' '.join(str(error).split()):.200}") from error
    document = chosen_deployment(documents, job, where)
    try:
        resource = read_resource(
            {"spec": document.get("spec"), "metadata": {"resourceVersion": "", **document["metadata"]}}
        )
        return StatedPlan(plan=resource.annotations.get(ANNOTATION), tasks=resource.overrides)
    except (SluiceError, ValueError, TypeError, KeyError, AttributeError) as error:
        raise InvalidInput(f"the FlinkDeployment in {where} cannot be read ({error!s:.200})") from error
