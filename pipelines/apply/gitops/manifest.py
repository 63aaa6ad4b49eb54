"""A plan in the manifest of a FlinkDeployment, as people keep it in a repository: all but the plan stays as written."""

import io
from collections.abc import Mapping, Sequence
from typing import Any, Final

from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError

from flink_client.jobs.deployment import wanted_parallelism
from flink_client.kubernetes.resource import read_resource
from flink_client.kubernetes.scaling import spec_change
from models.errors import InvalidInput
from models.plan.content import Plan
from pipelines.apply.export import annotations, task_manager_size

KIND: Final = "FlinkDeployment"
_INDENTS: Final = ((2, 2, 0), (2, 4, 2), (4, 4, 0), (4, 6, 4))
"""Of mappings, of sequences, and of the dash in a sequence: what people write."""
_OF_AN_EXPORT: Final = frozenset({"flinkConfiguration", "taskManager", "job"})


def is_manifest(text: str) -> bool:
    """Whether a file deploys a FlinkDeployment, and is not itself a patch that was exported."""
    try:
        documents = list(YAML(typ="safe", pure=True).load_all(text))
    except YAMLError:
        return False
    return any(_is_deployment(one) and set(one.get("spec") or {}) - _OF_AN_EXPORT for one in documents)


def planned_manifest(text: str, plan: Plan, vertices: Mapping[str, str] | None, with_sizes: bool, where: str) -> str:
    """The file with a plan in its FlinkDeployment.

    Args:
        vertices: vertex id by operator, to write the tasks; None: they stay.
        with_sizes: whether sizes of TaskManagers are written.
        where: name of the file, for errors.

    Raises:
        InvalidInput: it has no such deployment, or several, or an edit would reformat lines that do not change.
    """
    yaml, documents = _read(text, where)
    document = chosen_deployment(documents, plan.job, where)
    metadata = document["metadata"]
    resource = read_resource({"metadata": {"resourceVersion": "", **metadata}, "spec": document.get("spec") or {}})
    change = spec_change(
        resource,
        {} if vertices is None else wanted_parallelism(plan, vertices),
        running={},
        size=task_manager_size(plan) if with_sizes else None,
        adaptive=None,
    )
    _merge(document, {"metadata": {"annotations": annotations(plan)}, "spec": change.spec})
    return _written(yaml, documents)


def edited_manifest(text: str, job: str, patch: Mapping[str, Any], where: str) -> str:
    """The file with other values in its FlinkDeployment; None removes one, and a map that is empty then.

    Args:
        job: says which of several FlinkDeployments is meant.
        where: name of the file, for errors.

    Raises:
        InvalidInput: it has no such deployment, or an edit would change other lines.
    """
    yaml, documents = _read(text, where)
    _merge(chosen_deployment(documents, job, where), patch)
    edited = _written(yaml, documents)
    if _comments(edited) != _comments(text):  # those below a line belong to it
        raise InvalidInput(f"{where} cannot be edited without losing a comment below the lines that name the plan")
    return edited


def _comments(text: str) -> list[str]:
    return [line.partition("#")[2] for line in text.splitlines() if "#" in line]


def chosen_deployment(documents: Sequence[Any], job: str, where: str) -> Any:
    """The only FlinkDeployment of a file, or the only one that is named as the job.

    Raises:
        InvalidInput: there is none, or several.
    """
    found = [one for one in documents if _is_deployment(one)]
    named = [one for one in found if one["metadata"].get("name") == job]
    if len(found) != 1 and len(named) != 1:
        raise InvalidInput(f"{where} has {len(found)} FlinkDeployments and {len(named)} named {job!r}; one must be")
    return named[0] if len(named) == 1 else found[0]


def _read(text: str, where: str) -> tuple[YAML, list[Any]]:
    for mapping, sequence, offset in _INDENTS:
        yaml = YAML()
        yaml.preserve_quotes, yaml.width = True, 10**6
        yaml.indent(mapping=mapping, sequence=sequence, offset=offset)
        yaml.explicit_start = text.startswith("---")
        try:
            documents = list(yaml.load_all(text))
        except YAMLError as error:
            raise InvalidInput(f"{where} is no YAML: {' '.join(str(error).split()):.200}") from error
        if _written(yaml, documents) == text:
            return yaml, list(documents)
    raise InvalidInput(
        f"{where} cannot be edited without reformatting other lines; give a file of its own with --path, and list it under "
        "patches of the kustomization"
    )


def _written(yaml: YAML, documents: list[Any]) -> str:
    stream = io.StringIO()
    yaml.dump_all(documents, stream)
    return stream.getvalue()


def _is_deployment(document: object) -> bool:
    return isinstance(document, dict) and document.get("kind") == KIND and isinstance(document.get("metadata"), dict)


def _merge(target: Any, patch: Mapping[str, Any]) -> None:
    for key, value in patch.items():
        if isinstance(value, Mapping):
            if not isinstance(target.get(key), dict):
                target[key] = {}
            _merge(target[key], value)
            if not target[key]:
                del target[key]
        elif value is None:
            target.pop(key, None)
        else:
            target[key] = value
