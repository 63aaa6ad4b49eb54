"""The name of a `FlinkDeployment`, as users write it: NAMESPACE/NAME."""

from typing import Annotated

from pydantic import AfterValidator

from models.errors import InvalidInput


def checked_reference(text: str) -> str:
    """`NAMESPACE/NAME` as it is. Raises ValueError: it has another form."""
    namespace, _, name = text.partition("/")
    if not all(_is_kubernetes_name(part) for part in (namespace, name)):
        raise ValueError(
            f"must be NAMESPACE/NAME of a FlinkDeployment, such as streaming/nexmark-q5, but got {text!r:.200}"
        )
    return text


DeploymentReference = Annotated[str, AfterValidator(checked_reference)]
"""NAMESPACE/NAME of a FlinkDeployment."""


def parse_reference(text: str) -> tuple[str, str]:
    """Namespace and name of the option --kubernetes.

    Raises:
        InvalidInput: it is not `NAMESPACE/NAME`.
    """
    try:
        namespace, _, name = checked_reference(text).partition("/")
    except ValueError as error:
        raise InvalidInput(f"--kubernetes {error}") from None
    return namespace, name


def _is_kubernetes_name(text: str) -> bool:
    allowed = "abcdefghijklmnopqrstuvwxyz0123456789-."
    return 0 < len(text) <= 253 and set(text) <= set(allowed) and text[0] not in "-." and text[-1] not in "-."
