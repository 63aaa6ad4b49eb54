"""The Flink Kubernetes operator of a steered job: it scales in place, as the real one does, but by simulated time."""

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

from flink.steered import COUNT, SINK, SOURCE, SteeredJob
from flink_client.kubernetes.resource import read_resource
from flink_client.overrides import parsed_overrides
from on_kubernetes.deployed_resource import NAME, NAMESPACE, OVERRIDES, document, status_of
from on_kubernetes.server import ADMIN, FakeKubernetes

REFERENCE = f"{NAMESPACE}/{NAME}"
ERROR = '{"type": "ReconciliationException", "message": "the spec is refused"}'


class SteeredOperator:
    """Of the one FlinkDeployment, through whose API server it is reached, too."""

    def __init__(self, job: SteeredJob, clock: Callable[[], float]) -> None:
        self.job, self._clock = job, clock
        self.takes_s = 3.0
        """From a change of the spec to its being stable; Flink is asked at half that time."""
        self.acts, self.fails = True, False
        """Whether it acts on changes; whether it refuses them."""
        self.writes: list[dict[str, int]] = []
        """Overrides that were written, in order."""
        self.documents: list[dict[str, Any]] = []
        """The resource at the begin, and after each of these writes."""
        self.meanwhile: list[Callable[[], None]] = []
        """What happens once before the next patch is taken."""
        self._changed: tuple[int, float] | None = None
        self._asked = 0
        self.server = FakeKubernetes()
        self.server.before = self._before
        made = document(flinkConfiguration={OVERRIDES: f"{COUNT}:4", "jobmanager.scheduler": "adaptive"})
        made["metadata"] |= {"generation": 1, "resourceVersion": "1"}
        self.server.objects[REFERENCE] = made
        self._report("STABLE")
        self.documents.append(copy.deepcopy(self.resource))

    @property
    def resource(self) -> dict[str, Any]:
        return self.server.objects[REFERENCE]

    @property
    def overrides(self) -> dict[str, int]:
        """Tasks by vertex id as the resource states them."""
        return parsed_overrides(self.resource["spec"]["flinkConfiguration"][OVERRIDES], "test")

    @property
    def generation(self) -> int:
        return int(self.resource["metadata"]["generation"])

    def kubeconfig(self, folder: Path, token: str = ADMIN, server: str | None = None) -> Path:
        return self.server.kubeconfig(folder, token, server)

    def edit(self, **spec: Any) -> None:
        """As a person with kubectl does."""
        after = copy.deepcopy(self.resource)
        after["spec"] |= spec
        after["metadata"]["generation"] += 1
        self.server.objects[REFERENCE] = after
        self.touch()

    def state(self, tasks: int) -> None:
        """A person's override of the counting tasks."""
        self.edit(flinkConfiguration=self.resource["spec"]["flinkConfiguration"] | {OVERRIDES: f"{COUNT}:{tasks}"})

    def touch(self) -> None:
        """A new version without a new generation, as each write of the status makes one."""
        version = int(self.resource["metadata"]["resourceVersion"]) + 1000
        self.resource["metadata"]["resourceVersion"] = str(version)

    def _before(self, verb: str) -> None:
        if verb == "patch" and self.meanwhile:
            self.meanwhile.pop()()
        self.act()

    def act(self) -> None:
        """What it does by now."""
        if self._changed is None or self._changed[0] != self.generation:
            if self._reconciled() == self.generation:
                return
            self._changed = (self.generation, self._clock())
            self.writes.append(self.overrides)
            self.documents.append(copy.deepcopy(self.resource))
        since_s = self._clock() - self._changed[1]
        if not self.acts or since_s < self.takes_s / 2:
            return
        if self.fails and len(self.writes) == 1:
            if self.resource["status"].get("error") is None:
                self.resource["status"]["error"] = ERROR
                self.touch()
        elif self._asked != self.generation:
            self._asked = self.generation
            self.job.advance()
            wanted = {v: self.overrides.get(v, n) for v, n in self.job.required.items()}
            if wanted != self.job.required:
                self.job.require(wanted)
            self._report("UPGRADING")
        elif since_s >= self.takes_s and self._lifecycle() != "STABLE":
            self._report("STABLE")

    def _report(self, lifecycle: str) -> None:
        self.resource["status"] = status_of(self.resource, lifecycle)
        self.touch()

    def _lifecycle(self) -> str:
        return str(self.resource["status"]["lifecycleState"])

    def _reconciled(self) -> int | None:
        return read_resource(self.resource).reconciled_generation


TASKS = {SOURCE: 1, COUNT: 7, SINK: 1}
"""What 2,600 records/s take at 400 a counting task."""
