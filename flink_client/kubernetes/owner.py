"""The `FlinkDeployment` that deploys a Flink, by that Flink's own settings."""

import re
from collections.abc import Mapping
from typing import Final

_OWNER: Final = "kubernetes.jobmanager.owner.reference"
"""The operator sets it in native mode, so that Kubernetes removes the JobManager with the resource."""
_NAMESPACE: Final = "kubernetes.namespace"
_ENDS: Final = re.compile("[;}]")
"""Between references: up to Flink 1.20 as text of its own, later as YAML."""
_KIND: Final = re.compile(r"""\bkind: ?["']?FlinkDeployment\b""")
_NAME: Final = re.compile(r"""\bname: ?["']?([a-z0-9.-]+)""")


def owner_of(settings: Mapping[str, str]) -> str | None:
    """NAMESPACE/NAME of the resource; None where no setting names one.

    Args:
        settings: of the JobManager.
    """
    for reference in _ENDS.split(settings.get(_OWNER, "")):
        if _KIND.search(reference) and (name := _NAME.search(reference)) is not None:
            return f"{settings.get(_NAMESPACE, 'default')}/{name[1]}"
    return None
