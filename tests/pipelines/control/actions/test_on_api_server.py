"""An autopilot on a real API server: how it counts generations, refuses old versions, and lets in by rights."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from autopilots.flight import Flight
from flink.steered import COUNT
from flink_client.kubernetes.resource import read_resource
from flink_client.overrides import parsed_overrides
from on_kubernetes.api_server import ApiServer
from on_kubernetes.deployed_resource import OVERRIDES, Operator, document
from on_kubernetes.server import ADMIN, PLANNER, READER
from on_kubernetes.steered_operator import REFERENCE, TASKS
from pipelines.control.request import DeploymentTarget

pytestmark = pytest.mark.long


class Acting(Operator):
    """Scales the steered job in place with each change of the spec."""

    refuses: int | None = None
    """Generation that it does not take."""

    def act(self, flight: Flight) -> None:
        resource = read_resource(self.read())
        if resource.reconciled_generation == resource.generation:
            return
        if resource.generation == self.refuses:
            if resource.error is None:
                self.reconcile(error="the spec is refused")
            return
        stated = parsed_overrides(resource.configuration[OVERRIDES], "test")
        wanted = {v: stated.get(v, n) for v, n in flight.job.required.items()}
        if wanted != flight.job.required:
            flight.job.require(wanted)
        self.reconcile()


@pytest.fixture
def acting(flight: Flight, api_server: ApiServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Acting]:
    flight.job.rate = lambda t: 1000.0 if t < 30 else 2600.0
    monkeypatch.setenv("KUBECONFIG", str(api_server.kubeconfig(tmp_path, PLANNER)))
    made = Acting(str(api_server.kubeconfig(tmp_path, ADMIN)))
    made.deploy(document(flinkConfiguration={OVERRIDES: f"{COUNT}:4", "jobmanager.scheduler": "adaptive"}))
    flight.flink.before = lambda method, path: made.act(flight)
    yield made
    made.remove()
    made.close()


@pytest.mark.parametrize("through", ["operator", "rest"])
def test_a_rescale_raises_the_generation_by_one_and_is_taken_back_by_another(
    flight: Flight, acting: Acting, through: str
) -> None:
    target = DeploymentTarget(REFERENCE, None, "rest" if through == "rest" else "operator")
    before = read_resource(acting.read())
    acting.refuses = before.generation + 1 if through == "operator" else None
    stored = flight.fly(flight.autopilot(deployment=target, timeout_s=10.0, back_off_s=600.0), 60.0)
    (taken,) = [d for d in stored if d.rescale is not None]
    after = read_resource(acting.read())
    if acting.refuses is not None:
        assert taken.done == "rolled-back" and "the operator reports: the spec is refused" in taken.reason
        assert after.overrides == {**TASKS, COUNT: 4} and after.generation == before.generation + 2
        assert after.annotations["sluice/autopilot"].endswith("-taken-back")
    else:
        assert taken.done == "rescaled", taken.reason
        assert after.overrides == TASKS and after.generation == before.generation + 1


def test_an_account_that_may_only_read_changes_nothing(
    flight: Flight, acting: Acting, api_server: ApiServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KUBECONFIG", str(api_server.kubeconfig(tmp_path, READER)))
    before = acting.read()
    loop = flight.autopilot(deployment=DeploymentTarget(REFERENCE), timeout_s=10.0, back_off_s=600.0)
    (taken,) = [d for d in flight.fly(loop, 60.0) if d.rescale is not None]
    assert taken.done == "refused" and "the right to patch flinkdeployments" in taken.reason
    assert acting.read() == before
