"""Rates from servers of this machine that answer correctly, late, wrong, or not at all."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from answering.prometheus import PrometheusServer
from pipelines.inputs.operations.operations import RateOrigin
from pipelines.rates.origin import describe, read_rate
from pipelines.rates.reading import RateUnknown


@pytest.fixture(scope="module")
def server() -> Iterator[PrometheusServer]:
    with PrometheusServer() as running:
        yield running


@pytest.fixture
def prometheus(server: PrometheusServer) -> PrometheusServer:
    server.rates, server.answer, server.pause_s, server.drops = {"sum(events)": 1234.5}, None, 0.0, None
    return server


def origin(url: str, timeout_s: float = 5.0, **fields: Any) -> RateOrigin:
    return RateOrigin.model_validate(
        {"prometheus": {"url": url, "query": "sum(events)"} | fields, "timeout_s": timeout_s}
    )


def _body(result: object) -> bytes:
    return json.dumps({"status": "success", "data": {"result": result}}).encode()


def test_a_rate_is_the_result_of_the_query(prometheus: PrometheusServer) -> None:
    assert read_rate(origin(prometheus.url), "wordcount").rate == 1234.5
    assert prometheus.queries[-1] == "sum(events)"


@pytest.mark.parametrize(
    ("result", "rate"),
    [
        ([{"value": [0, "1.5"]}, {"value": [0, "2"]}], 3.5),
        ([1700000000.0, "7"], 7.0),
        ([{"value": [0, "-3"]}], -3.0),
    ],
    ids=["series are summed", "scalar", "what makes no sense is for others to refuse"],
)
def test_what_prometheus_may_answer(prometheus: PrometheusServer, result: object, rate: float) -> None:
    prometheus.answer = 200, _body(result)
    assert read_rate(origin(prometheus.url), "wordcount").rate == rate


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        ((200, b"<html>"), "does not answer: Expecting value|something other than"),
        ((200, b""), "does not answer|something other than"),
        ((200, b"[]"), "something other than an instant query's result"),
        ((200, b"[" * 100_000), "something other than|does not answer"),
        ((200, _body([])), "result is empty"),
        ((200, _body({"a": 1})), "result is empty"),
        ((200, _body([{"value": 3}])), "something other"),
        ((200, _body([{"value": [0, "fast"]}])), "something other"),
        ((200, _body([{"metric": {}, "values": [[0, "1"]]}])), "something other"),
        ((400, b'{"status":"error","error":"parse error"}'), "refuses the query: .*parse error"),
        ((302, b""), "answers 302, a redirect to .* give the address that answers itself"),
        ((500, b"x" * 10_000), "refuses the query: .{1,400}$"),
        ((200, b" " * (5 * 2**20)), "its answer had no end"),
    ],
    ids=lambda value: value[1][:40].decode() if isinstance(value, tuple) else "",
)
def test_an_invalid_answer_is_no_rate_and_reported_in_one_line(
    prometheus: PrometheusServer, answer: tuple[int, bytes], message: str
) -> None:
    prometheus.answer = answer
    with pytest.raises(RateUnknown, match=message) as raised:
        read_rate(origin(prometheus.url), "wordcount")
    assert len(str(raised.value)) < 600


def test_an_answer_that_is_late_endless_or_never_comes_is_not_waited_for(prometheus: PrometheusServer) -> None:
    prometheus.pause_s = 5.0
    with pytest.raises(RateUnknown, match=r"does not answer: .*timed out"):
        read_rate(origin(prometheus.url, timeout_s=0.2), "wordcount")
    prometheus.pause_s, prometheus.drops = 0.0, b"x"
    with pytest.raises(RateUnknown, match="had no end"):
        read_rate(origin(prometheus.url, timeout_s=0.3), "wordcount")
    prometheus.drops = None
    assert read_rate(origin(prometheus.url), "wordcount").rate == 1234.5
    with PrometheusServer() as gone:
        pass
    with pytest.raises(RateUnknown, match=r"does not answer: .*refused"):
        read_rate(origin(gone.url), "wordcount")


def test_a_token_is_sent_and_never_printed(prometheus: PrometheusServer, monkeypatch: pytest.MonkeyPatch) -> None:
    guarded = origin(prometheus.url, token_variable="RATES_TOKEN")
    with pytest.raises(RateUnknown, match=r"^the environment variable RATES_TOKEN must hold a token, but is not set"):
        read_rate(guarded, "wordcount")
    monkeypatch.setenv("RATES_TOKEN", "s3cret")
    assert read_rate(guarded, "wordcount").rate == 1234.5
    assert prometheus.headers["Authorization"] == "Bearer s3cret"
    prometheus.answer = 403, b"no"
    with pytest.raises(RateUnknown) as raised:
        read_rate(guarded, "wordcount")
    assert "s3cret" not in str(raised.value) + describe(guarded, "wordcount")
