"""Flink's history of rescales, as 2.3.0 answers it."""

from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler

import pytest

from answering.server import AnsweringServer
from flink_client.jobs.rescales import RecordedRescale, rescales
from flink_client.rest.client import FlinkRest
from models.errors import SluiceError

JOB = "1" * 32
HISTORY = [
    {
        "rescaleUuid": "b",
        "resourceRequirementsUuid": "y",
        "rescaleAttemptId": 1,
        "vertices": {},
        "slots": {},
        "schedulerStates": None,
        "startTimestampInMillis": 9_000,
        "endTimestampInMillis": None,
        "terminalState": None,
        "triggerCause": "UPDATE_REQUIREMENT",
        "terminatedReason": None,
    },
    {
        "rescaleUuid": "a",
        "startTimestampInMillis": 1_000,
        "endTimestampInMillis": 2_500,
        "terminalState": "COMPLETED",
        "triggerCause": "INITIAL_SCHEDULE",
        "terminatedReason": "SUCCEEDED",
    },
]


@pytest.fixture
def answer() -> list[tuple[int, object]]:
    return [(200, HISTORY)]


@pytest.fixture
def rest(answer: list[tuple[int, object]]) -> Iterator[FlinkRest]:
    def answered(request: BaseHTTPRequestHandler, body: bytes) -> tuple[int, object]:
        assert request.path == f"/jobs/{JOB}/rescales/history"
        return answer[0]

    with AnsweringServer(answered) as server, FlinkRest(server.url, patience_s=0.0) as client:
        yield client


def test_rescales_have_a_cause_an_end_and_a_duration(rest: FlinkRest) -> None:
    assert rescales(rest, JOB) == (
        RecordedRescale("b", "UPDATE_REQUIREMENT", None, None, None),
        RecordedRescale("a", "INITIAL_SCHEDULE", "COMPLETED", "SUCCEEDED", 1.5),
    )


@pytest.mark.parametrize("answer", [[(404, {"errors": ["Not found: /jobs/1/rescales/history"]})]])
def test_a_cluster_without_a_history_has_none(rest: FlinkRest) -> None:
    assert rescales(rest, JOB) is None


@pytest.mark.parametrize("answer", [[(500, {"errors": ["no leader"]})], [(200, [{"rescaleUuid": "a"}])], [(200, 7)]])
def test_other_answers_are_errors(rest: FlinkRest) -> None:
    with pytest.raises(SluiceError, match=r"no leader|does not answer as Flink"):
        rescales(rest, JOB)
