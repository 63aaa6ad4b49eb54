"""An autopilot whose credentials do not let it act."""

import json
from pathlib import Path

import pytest

from answering.tls_proxy import TlsProxy, certificate
from autopilots.flight import Flight
from flink.steered import COUNT
from flink_client.rest.client import FlinkRest
from pipelines.control.autopilot import Autopilot

SECRET = "s3cr3t-of-this-test"


def test_an_autopilot_that_may_only_read_records_the_refusal_and_changes_nothing(
    flight: Flight, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = certificate(tmp_path / "certificates")
    with TlsProxy(flight.flink.url, made, SECRET) as proxy:
        proxy.read_only = True
        named = {"host": proxy.url, "password": SECRET, "extra": {"ca_file": str(made.authority)}}
        monkeypatch.setenv("AIRFLOW_CONN_MY_FLINK", json.dumps(named))
        flight.job.rate = lambda t: 1000.0 if t < 60 else 2600.0
        plain = flight.autopilot()
        with FlinkRest("connection:my_flink", timeout_s=5.0, patience_s=0.0) as rest:
            loop = Autopilot(
                flight.workspace, plain.request, rest, clock=flight.clock, sleep=flight.clock.sleep, now=flight.now
            )
            stored = flight.fly(loop, 120.0)
    refused = [one for one in stored if one.done == "refused"]
    assert refused and all(one.rescale is not None and one.rescale.after["count"] == 7 for one in refused)
    reasons = " ".join(one.model_dump_json() for one in refused)
    assert "the token of the connection my_flink has no right to this: grant it there" in reasons
    assert flight.flink.changes == [] and flight.job.tasks[COUNT] == 4 and set(proxy.methods) == {"GET"}
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert files and not any(SECRET.encode() in path.read_bytes() for path in files)
