"""The client against a small server that answers as Flink does, late, wrong or not at all."""

import json
import socket
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler

import pytest

from answering.server import AnsweringServer
from flink_client.rest.client import FlinkRest
from flink_client.rest.jars import JarProgram
from flink_client.rest.waiting import wait_for
from models.errors import InvalidInput, SluiceError

PROGRAM = JarProgram("sluice.Run", ("{}",), {})
Answer = tuple[int, object]


class Server(AnsweringServer):
    """Gives the listed answers in turn, the last one again and again; remembers what was asked."""

    def __init__(self) -> None:
        self.answers: list[Answer] = []
        self.asked: list[tuple[str, str, object]] = []
        super().__init__(self._next)

    def _next(self, request: BaseHTTPRequestHandler, body: bytes) -> Answer:
        self.asked.append((request.command, request.path, json.loads(body) if body else None))
        return self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]


@pytest.fixture
def server() -> Iterator[Server]:
    with Server() as made:
        yield made


@pytest.fixture
def rest(server: Server) -> Iterator[FlinkRest]:
    with FlinkRest(server.url, patience_s=1.0) as client:
        yield client


def test_a_server_error_is_asked_again(server: Server, rest: FlinkRest) -> None:
    server.answers = [(500, {"errors": ["not yet"]}), (503, "starting"), (200, {"flink-version": "1.20.5"})]
    assert rest.flink_version() == "1.20.5"
    assert len(server.asked) == 3


def test_one_that_stays_is_reported_in_flinks_words(server: Server, rest: FlinkRest) -> None:
    server.answers = [
        (500, {"errors": ["Internal server error.", "<Exception\njava.lang.X: no leader\n\tat a.b(C)\n>"]})
    ]
    with pytest.raises(SluiceError, match=r"java\.lang\.X: no leader.*500 to GET /config"):
        rest.flink_version()


@pytest.mark.parametrize("status", [400, 500])
def test_a_job_is_submitted_once_and_a_refusal_is_an_invalid_input(
    server: Server, rest: FlinkRest, status: int
) -> None:
    trace = (
        "org.apache.Wrapper: main failed\n\tat a.b(C)\nCaused by: SqlParserException: Encountered FROMM\n\t... 3 more"
    )
    server.answers = [(status, {"errors": ["Internal server error.", trace]}), (200, {"jobid": "1"})]
    with pytest.raises(InvalidInput, match=r"Flink refused the job: SqlParserException: Encountered FROMM \| "):
        rest.run("jar", PROGRAM)
    assert len(server.asked) == 1


def test_no_answer_is_reported_with_the_address(server: Server) -> None:
    server.close()
    with (
        FlinkRest(server.url, patience_s=0.3) as rest,
        pytest.raises(SluiceError, match=rf"{server.url} does not answer"),
    ):
        rest.run("jar", PROGRAM)


def test_an_answer_that_comes_too_late_is_reported() -> None:

    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        with FlinkRest(url, timeout_s=0.2, patience_s=0) as rest, pytest.raises(SluiceError, match="ReadTimeout"):
            rest.flink_version()


def test_metrics_without_a_value_are_left_out(server: Server, rest: FlinkRest) -> None:
    server.answers = [(200, [{"id": "0.in", "value": "7"}, {"id": "1.busy", "value": "NaN"}, {"id": "1.in"}])]
    assert rest.vertex_metrics("j", "v", ["in", "busy"], tasks=2) == [{"in": 7.0}, {}]
    assert server.asked[0][1] == "/jobs/j/vertices/v/metrics?get=0.in%2C0.busy%2C1.in%2C1.busy"


def test_metrics_of_single_tasks_are_asked_for_once_each(server: Server, rest: FlinkRest) -> None:
    names = [f"{task}.offset-of-a-partition-with-a-long-name-{task}" for task in range(200)]
    server.answers = [(200, [{"id": name, "value": "3"} for name in names])]
    assert rest.task_metrics("j", "v", names) == dict.fromkeys(names, 3.0)
    asked = [one for _, path, _ in server.asked for one in path.partition("?get=")[2].split("%2C")]
    assert asked == names and max(len(path) for _, path, _ in server.asked) < 4000
    assert rest.task_metrics("j", "v", []) == {}


def test_metrics_of_many_tasks_are_asked_for_in_requests_that_flink_takes(server: Server, rest: FlinkRest) -> None:
    names = [f"a-metric-with-a-name-that-is-long-{i}" for i in range(12)]
    server.answers = [(200, [{"id": f"{task}.{names[0]}", "value": f"{task}"} for task in range(40)])]
    assert rest.vertex_metrics("j", "v", names, tasks=40) == [{names[0]: float(task)} for task in range(40)]
    assert len(server.asked) > 1 and max(len(path) for _, path, _ in server.asked) < 4000
    asked = [one for _, path, _ in server.asked for one in path.partition("?get=")[2].split("%2C")]
    assert sorted(asked) == sorted(f"{task}.{name}" for task in range(40) for name in names)


def test_a_rescale_names_every_vertex(server: Server, rest: FlinkRest) -> None:
    bounds = {"parallelism": {"lowerBound": 1, "upperBound": 2}}
    server.answers = [(200, {"a": bounds, "b": bounds})]
    rest.require("j", {"b": 5})
    assert server.asked[-1] == (
        "PUT",
        "/jobs/j/resource-requirements",
        {
            "a": {"parallelism": {"lowerBound": 2, "upperBound": 2}},
            "b": {"parallelism": {"lowerBound": 5, "upperBound": 5}},
        },
    )


def test_a_plan_is_put_in_topological_order(server: Server, rest: FlinkRest) -> None:
    sink = {
        "id": "s",
        "parallelism": 1,
        "description": "Sink &amp;<br/>",
        "inputs": [{"id": "m", "ship_strategy": "HASH"}],
    }
    middle = {"id": "m", "parallelism": 2, "description": "Map", "inputs": [{"id": "o", "ship_strategy": "REBALANCE"}]}
    server.answers = [
        (200, {"plan": {"nodes": [sink, middle, {"id": "o", "parallelism": 1, "description": "Source"}]}})
    ]
    vertices, edges = rest.plan("jar", PROGRAM)
    assert [(v.id, v.name, v.parallelism) for v in vertices] == [
        ("o", "Source", 1),
        ("m", "Map", 2),
        ("s", "Sink &", 1),
    ]
    assert {(e.upstream, e.downstream, e.ship_strategy) for e in edges} == {("o", "m", "REBALANCE"), ("m", "s", "HASH")}


def test_a_failed_savepoint_is_reported_with_its_cause(server: Server, rest: FlinkRest) -> None:
    failed = {"failure-cause": {"stack-trace": "CheckpointException: disk full\n\tat x.y(Z)"}}
    done = {"status": {"id": "COMPLETED"}, "operation": failed}
    config = (200, {"state_backend": "EmbeddedRocksDBStateBackend"})
    server.answers = [config, (202, {"request-id": "t"}), (200, {"status": {"id": "IN_PROGRESS"}}), (200, done)]
    with pytest.raises(SluiceError, match="the savepoint of job j failed: CheckpointException: disk full"):
        rest.savepoint("j", "file:///x", cancel=False)


@pytest.mark.parametrize(
    ("config", "canonical", "wanted"),
    [
        ({"state_backend": "ForStStateBackend"}, False, {"formatType": "NATIVE"}),
        ({"state_backend": "ForStStateBackend"}, True, {"formatType": "NATIVE"}),
        ({"state_backend": "EmbeddedRocksDBStateBackend"}, True, {}),
        ({"state_changelog_enabled": False}, False, {"formatType": "NATIVE"}),
        ({"state_changelog_enabled": True}, False, {}),
        ({}, False, {"formatType": "NATIVE"}),
    ],
)
def test_a_savepoint_has_the_format_that_the_state_backend_supports(
    server: Server, rest: FlinkRest, config: dict[str, object], canonical: bool, wanted: dict[str, object]
) -> None:
    server.answers = [(200, config), (202, {"request-id": "t"})]
    assert rest.trigger_savepoint("j", cancel=True, canonical=canonical) == "/jobs/j/savepoints/t"
    assert server.asked[-1] == ("POST", "/jobs/j/savepoints", {"cancel-job": True, **wanted})


def _job(state: str, running: int) -> Answer:
    vertex = {"id": "v", "name": "map", "parallelism": 2, "tasks": {"RUNNING": running}}
    return 200, {"state": state, "vertices": [vertex] if running else [], "plan": {}}


def test_a_job_that_fails_during_a_wait_is_reported_with_its_cause(server: Server, rest: FlinkRest) -> None:
    history = {"exceptionHistory": {"entries": [{"stacktrace": "RuntimeException: boom\n\tat a.b(C)"}]}}
    not_yet = 200, {"exceptionHistory": {"entries": []}}
    server.answers = [_job("CREATED", 0), _job("RUNNING", 1), _job("FAILED", 2), not_yet, (200, history)]
    with pytest.raises(SluiceError, match="job j is failed: RuntimeException: boom"):
        rest.wait_until_running("j", seconds=5)


def test_a_job_that_ends_before_it_is_cancelled_is_left_alone(server: Server, rest: FlinkRest) -> None:
    ended = (409, {"errors": ["the job has already reached another terminal state (FAILED)"]})
    server.answers = [_job("RUNNING", 2), ended, _job("RUNNING", 2)]
    rest.cancel("j")
    server.answers = [_job("RUNNING", 2), (404, {"errors": ["Job could not be found."]})]
    with pytest.raises(SluiceError, match="could not be found"):
        rest.cancel("j")


def test_a_parallelism_that_never_comes_is_not_waited_for_forever(server: Server, rest: FlinkRest) -> None:
    server.answers = [_job("RUNNING", 2)]
    assert rest.wait_until_running("j", seconds=1, parallelism={"v": 2}).all_running
    with pytest.raises(SluiceError, match=r"did not come within 0\.5 s"):
        rest.wait_until_running("j", seconds=0.5, parallelism={"v": 3})


def _with_side_input(events: dict[str, int], rules: dict[str, int]) -> Answer:
    counts = {"events": events, "rules": rules}
    vertices = [{"id": name, "name": name, "parallelism": 2, "tasks": tasks} for name, tasks in counts.items()]
    return 200, {"state": "RUNNING", "vertices": vertices, "plan": {}}


@pytest.mark.parametrize(
    ("events", "rules", "runs"),
    [
        ({"RUNNING": 2}, {"RUNNING": 0, "FINISHED": 2}, True),
        ({"RUNNING": 2}, {"RUNNING": 1, "FINISHED": 1}, True),
        ({"RUNNING": 1, "DEPLOYING": 1}, {"RUNNING": 0, "FINISHED": 2}, False),
        ({"RUNNING": 2}, {"RUNNING": 0, "FINISHED": 1, "CANCELING": 1}, False),
        ({"RUNNING": 0, "FINISHED": 2}, {"RUNNING": 0, "FINISHED": 2}, False),
    ],
)
def test_tasks_that_have_read_a_bounded_input_are_done_and_not_broken(
    server: Server, rest: FlinkRest, events: dict[str, int], rules: dict[str, int], runs: bool
) -> None:
    server.answers = [_with_side_input(events, rules)]
    status = rest.job("j")
    assert status.all_running == runs
    assert [v.is_done for v in status.vertices] == [events.get("FINISHED") == 2, rules.get("FINISHED") == 2]


def test_waiting_returns_what_was_found() -> None:
    looks: Callable[[], int | None] = iter([None, None, 3]).__next__
    assert wait_for(looks, 5, "a three", pause_s=0) == 3


def test_names_that_grow_when_they_are_sent_are_asked_for_in_lines_that_flink_takes(
    server: Server, rest: FlinkRest
) -> None:
    """A name of 24 Chinese characters; each is sent as nine."""
    server.answers = [(200, [])]
    rest.vertex_metrics("a" * 32, "b" * 32, [f"{'点' * 24}.pendingRecords"], 40)
    assert len(server.asked) > 1 and max(len(path) for _, path, _ in server.asked) < 4000
