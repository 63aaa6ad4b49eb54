"""What the API server does not permit is one sentence, and changes nothing."""

from collections.abc import Callable
from pathlib import Path

import pytest

from answering.tls_proxy import TlsProxy, certificate
from autopilots.flight import Flight
from flink.steered import COUNT
from on_kubernetes.server import ADMIN, PLANNER, READER
from on_kubernetes.steered_operator import SteeredOperator
from pipelines.control.autopilot import Autopilot

Made = Callable[..., Autopilot]


@pytest.fixture
def uses(operator: SteeredOperator, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    def use(token: str, server: str | None = None) -> None:
        monkeypatch.setenv("KUBECONFIG", str(operator.kubeconfig(tmp_path, token, server)))

    return use


@pytest.mark.parametrize("through", ["operator", "rest"])
def test_a_missing_right_refuses_the_rescale_and_a_bound_role_lets_it_through(
    flight: Flight, operator: SteeredOperator, autopilot: Made, uses: Callable[..., None], through: str
) -> None:
    uses(READER)
    loop = autopilot(through, back_off_s=30.0)
    refused = [d for d in flight.fly(loop, 60.0) if d.rescale is not None]
    assert refused and {d.done for d in refused} == {"refused"}
    said = refused[0].reason
    assert said.startswith(
        "the right to patch flinkdeployments.flink.apache.org in namespace streaming is missing (403"
    )
    assert (
        "bind the Role of docker/kubernetes/role.yaml to this account; nothing was changed" in said and "\n" not in said
    )
    assert operator.generation == 1 and flight.flink.changes == []
    uses(PLANNER)
    assert "rescaled" in [d.done for d in flight.fly(loop, 90.0)] and flight.job.tasks[COUNT] == 7


def test_an_expired_token_and_a_wrong_certificate_hold_the_rescale_back(
    flight: Flight, operator: SteeredOperator, autopilot: Made, uses: Callable[..., None], tmp_path: Path
) -> None:
    uses("stale")
    loop = autopilot()
    reasons = {d.reason for d in flight.fly(loop, 60.0) if d.held == "resource"}
    (said,) = reasons
    assert "does not accept the credentials (401" in said and "renew the token" in said and "stale" not in said
    with TlsProxy(operator.server.url, certificate(tmp_path / "certificates"), ADMIN) as proxy:
        uses(ADMIN, proxy.url)
        flight.fly(loop, 60.0)  # an equal outcome is recorded once a minute
        (said,) = {d.reason for d in flight.fly(loop, 60.0) if d.held == "resource"}
    assert "is of no authority that is trusted here" in said and "\n" not in said
    assert operator.generation == 1 and flight.flink.changes == []
    uses(ADMIN)
    assert "rescaled" in [d.done for d in flight.fly(loop, 30.0)], "renewed credentials are taken up while it runs"


def test_a_right_that_is_lost_after_flink_has_rescaled_takes_the_rescale_back(
    flight: Flight, operator: SteeredOperator, autopilot: Made, uses: Callable[..., None]
) -> None:
    """Else the next reconciliation would, at a time of its own."""
    uses(PLANNER)
    operator.server.before = lambda verb: (
        operator.server._verbs[PLANNER].discard("patch") if verb == "dry-run" else None
    )
    (taken, *_) = [d for d in flight.fly(autopilot("rest", back_off_s=600.0), 60.0) if d.rescale is not None]
    assert taken.done == "rolled-back" and "the right to patch" in taken.reason
    assert [one[COUNT] for one in flight.job.puts] == [7, 4] and operator.generation == 1


def test_an_api_server_that_is_away_for_a_while_is_waited_for(
    flight: Flight, operator: SteeredOperator, autopilot: Made
) -> None:
    """Before the patch, the action is resumed in the next round; after it, the operator is asked again."""
    acts = operator.server.before

    def away(verb: str) -> None:
        if len(operator.server.verbs) in (2, 5, 6):
            raise OSError("the answer is lost")
        acts(verb)

    operator.server.before = away
    stored = flight.fly(autopilot(), 60.0)
    assert any(d.held == "stale" and "does not answer" in d.reason for d in stored)
    (taken,) = [d for d in stored if d.rescale is not None]
    assert taken.done == "rescaled" and taken.rescale is not None and taken.rescale.resumed
    assert operator.server.verbs[:5] == ["get", "get", "get", "patch", "get"] and operator.generation == 2
