"""What a `FlinkDeployment` (flink.apache.org/v1beta1) states: its spec, and what the operator reports in its status."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from flink_client.overrides import OVERRIDES_OPTION, parsed_overrides
from models.errors import SluiceError

STABLE: Final = "STABLE"
DEPLOYED: Final = "DEPLOYED"
"""Deployed, but the operator does not count it as stable yet."""
FAILED: Final = frozenset({"FAILED", "ROLLING_BACK", "ROLLED_BACK"})
"""Lifecycle states that a change does not leave by itself for the better."""


@dataclass(frozen=True)
class FlinkDeployment:
    """One version of the resource, as the API server gave it."""

    namespace: str
    name: str
    resource_version: str
    """Changes with every write; a patch that names an old one is refused."""
    generation: int
    """Changes with every write of the spec."""
    annotations: Mapping[str, str]
    spec: Mapping[str, Any]
    status: Mapping[str, Any]

    @property
    def reference(self) -> str:
        return f"{self.namespace}/{self.name}"

    @property
    def configuration(self) -> dict[str, str]:
        """`spec.flinkConfiguration` by whole keys; newer operators also take it as nested maps."""
        return dict(_flat("", self.spec.get("flinkConfiguration") or {}))

    @property
    def overrides(self) -> dict[str, int]:
        """Tasks by vertex id that the resource overrides."""
        return parsed_overrides(self.configuration.get(OVERRIDES_OPTION, ""), self.reference)

    @property
    def is_native(self) -> bool:
        """Whether Flink itself starts TaskManagers; the operator's other mode is `standalone`."""
        return str(self.spec.get("mode", "native")) == "native"

    @property
    def lifecycle(self) -> str | None:
        state = self.status.get("lifecycleState")
        return None if state is None else str(state)

    @property
    def reconciled_generation(self) -> int | None:
        """Generation of the spec that the operator has acted on; None while there is none.

        Newer operators report `status.observedGeneration`; all keep it with the last reconciled spec.
        """
        observed = self.status.get("observedGeneration")
        if isinstance(observed, int):
            return observed
        last = _section(self.status, "reconciliationStatus").get("lastReconciledSpec")
        try:
            return int(json.loads(last)["resource_metadata"]["metadata"]["generation"]) if last else None
        except (ValueError, KeyError, TypeError):
            return None

    @property
    def error(self) -> str | None:
        """The operator's last error, in its own words."""
        text = self.status.get("error")
        if not text:
            return None
        try:
            said = json.loads(text)
        except ValueError:
            said = None
        return str(said.get("message") or text)[:500] if isinstance(said, dict) else str(text)[:500]

    @property
    def job_id(self) -> str | None:
        """Flink's id of the job."""
        return _section(self.status, "jobStatus").get("jobId")

    @property
    def job_state(self) -> str | None:
        """Flink's state of the job."""
        return _section(self.status, "jobStatus").get("state")


def read_resource(document: Mapping[str, Any]) -> FlinkDeployment:
    """The resource in an answer of the API server.

    Raises:
        SluiceError: it has another form.
    """
    metadata = document.get("metadata")
    if not isinstance(metadata, Mapping) or "resourceVersion" not in metadata:
        raise SluiceError("the answer is no resource of an API server: it has no metadata.resourceVersion")
    return FlinkDeployment(
        namespace=str(metadata.get("namespace", "default")),
        name=str(metadata["name"]),
        resource_version=str(metadata["resourceVersion"]),
        generation=int(metadata.get("generation", 0)),
        annotations=dict(metadata.get("annotations") or {}),
        spec=document.get("spec") or {},
        status=document.get("status") or {},
    )


def _section(status: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    found = status.get(name)
    return found if isinstance(found, Mapping) else {}


def _flat(prefix: str, settings: Mapping[str, Any]) -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    for key, value in settings.items():
        whole = f"{prefix}{key}"
        found += _flat(f"{whole}.", value) if isinstance(value, Mapping) else [(whole, _text(value))]
    return found


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
