"""Access to every route: without a token, with wrong ones, without the permission, and with it."""

import re
import secrets
from pathlib import Path
from urllib.parse import quote

import httpx
import pytest
from fastapi.routing import APIRoute

from pipelines.control.files import AutopilotFiles
from pipelines.store.pins import PlanPin, keep_pin, pin_of
from pipelines.store.plans import PlanStore
from pipelines.store.workspace import Workspace
from sluice_pages.app import app
from workspaces.plan_pages import JOB, PASSWORD, Server

pytestmark = pytest.mark.slow

PARAMETERS = {"job": JOB, "version": "2", "file": "pages.css"}
PLANS = tuple(f"/jobs/{{job}}/{what}" for what in ("replan", "apply", "roll-back", "pin", "unpin"))
STOP, RESUME = "/jobs/{job}/autopilot/stop", "/jobs/{job}/autopilot/resume"
CHANGING = (*PLANS, STOP, RESUME)
QUERIES = {"/jobs/{job}/difference": "?before=1&after=2", "/jobs/{job}/difference.json": "?before=1&after=2"}


def _addresses() -> dict[str, str]:
    """Every route of the application, with an address that it answers; a new parameter fails here."""
    routes = {route.path: route for route in app().routes if route.path not in CHANGING}
    assert all(isinstance(route, APIRoute) for route in routes.values()), "a mount is behind no check"
    filled = {path: re.sub(r"{(\w+)}", lambda match: PARAMETERS[match[1]], path) for path in routes}
    return {path: f"/sluice{address}{QUERIES.get(path, '')}" for path, address in filled.items()}


@pytest.fixture(scope="session")
def tokens(server: Server) -> dict[str, tuple[str | None, set[int]]]:
    """Credentials that do not serve, and how they are refused."""
    return {
        "no token": (None, {401}),
        "no JWT": ("x", {401}),
        "a token signed with another secret": (server.forged("reader", secret=secrets.token_hex(64)), {401}),
        "a token without a signature": (server.token("reader").rpartition(".")[0] + ".", {401}),
        "an expired token": (server.forged("reader", expired=True), {401}),
        "a user who may not see DAGs": (server.token("nobody"), {403}),
    }


def test_a_token_forged_with_the_right_secret_would_serve(server: Server) -> None:
    """So the forged ones above are refused for their signature or their time, and for nothing else."""
    with server.client(server.forged("reader")) as client:
        assert client.get("/sluice/jobs.json").status_code == 200


@pytest.mark.parametrize("as_cookie", [False, True], ids=["header", "cookie"])
def test_every_route_refuses_whoever_may_not_see_plans(
    server: Server, tokens: dict[str, tuple[str | None, set[int]]], as_cookie: bool
) -> None:
    addresses = _addresses()
    assert len(addresses) >= 10
    with server.client() as client:
        for path, address in addresses.items():
            for name, (token, refused) in tokens.items():
                sent = {} if token is None else {"Authorization": f"Bearer {token}"}
                if as_cookie:
                    sent = {} if token is None else {"Cookie": f"_token={token}"}
                answer = client.get(address, headers=sent)
                assert answer.status_code in refused, f"{path} with {name}: {answer.status_code}"
                assert set(answer.json()) == {"detail"}, f"{path} with {name}"
                client.cookies.clear()


def test_every_route_answers_a_read_only_user(reader: httpx.Client) -> None:
    for path, address in _addresses().items():
        answer = reader.get(address.removeprefix("/sluice"))
        assert answer.status_code == 200, f"{path}: {answer.status_code} {answer.text[:200]}"


def test_a_job_is_unpinned_by_users_who_may_start_replans_from_sluices_own_pages(
    server: Server, folder: Path, tokens: dict[str, tuple[str | None, set[int]]]
) -> None:
    workspace, address = Workspace(folder), f"/sluice/jobs/{JOB}/unpin"
    pin = PlanPin(job=JOB, version=1, by="ann", reason="too few slots", pinned_at="2026-03-01T12:00:00+00:00")
    keep_pin(workspace, pin)
    reader, planner = server.token("reader"), server.token("planner")
    for name, (token, refused) in {**tokens, "a user who may only read": (reader, {403})}.items():
        with server.client(token) as client:
            assert client.post(address).status_code in refused, name
    with server.client(planner) as client:
        assert client.post(address, headers={"Sec-Fetch-Site": "cross-site"}).status_code == 403
        for origin in ("https://elsewhere.example", "null"):
            assert client.post(address, headers={"Origin": origin}).status_code == 403, (
                "a browser without Sec-Fetch-Site"
            )
        text = client.get("/sluice/", headers={"Accept": "text/html"}).text
        assert "pinned to version 1 since 2026-03-01 12:00 UTC by ann" in text and "too few slots" in text
        assert pin_of(workspace, JOB) == pin
        answer = client.post(address)
        assert (answer.status_code, answer.headers["location"]) == (303, "/sluice/")
        assert pin_of(workspace, JOB) is None
        assert client.post("/sluice/jobs/no-such-job/unpin").status_code == 404
        assert "pinned to" not in client.get("/sluice/", headers={"Accept": "text/html"}).text


def test_plans_are_changed_by_users_who_may_start_the_dags_from_sluices_own_pages(
    server: Server, folder: Path, tokens: dict[str, tuple[str | None, set[int]]]
) -> None:
    """Refused: wrong credentials, a read-only user, another site, a form that is wrong or of another version's page."""
    store, wrong = PlanStore(Workspace(folder)), {**tokens, "a user who may only read": (server.token("reader"), {403})}
    before = (store.versions(JOB), _started(server))
    right = {"current": "2", "version": "1", "rate": "2000000", "reason": "too few slots"}
    for path in PLANS:
        address = f"/sluice{path.format(job=JOB)}"
        for name, (token, refused) in wrong.items():
            with server.client(token) as client:
                assert client.post(address, data=right).status_code in refused, f"{path} with {name}"
        with server.client(server.token("planner")) as client:
            assert client.post(address, data=right, headers={"Sec-Fetch-Site": "cross-site"}).status_code == 403
            assert client.post(f"/sluice{path.format(job='no-such-job')}", data=right).status_code == 404
            if not path.endswith("unpin"):
                assert client.post(address, data=right | {"current": "x"}).status_code == 400
                answer = client.post(address, data=right | {"current": "1"})
                assert answer.status_code == 409 and "version 2 is the current one now" in answer.json()["detail"]
                assert client.post(address, content=b"reason=" + b"x" * 20_000).status_code == 413
            if path.endswith("replan"):
                for rate in ("", "0", "-1", "nan", "inf", "1e99", "much"):
                    assert client.post(address, data=right | {"rate": rate}).status_code == 400, rate
            if path.endswith("roll-back"):
                assert client.post(address, data=right | {"version": "2"}).status_code == 409
    assert (store.versions(JOB), _started(server)) == before and pin_of(Workspace(folder), JOB) is None


def _started(server: Server) -> int:
    """Runs of the DAGs that replan and apply."""
    with server.client(server.token("planner")) as client:
        answers = [client.get(f"/api/v2/dags/{dag}/dagRuns").raise_for_status() for dag in ("replan", "apply_plan")]
    return sum(answer.json()["total_entries"] for answer in answers)


def test_a_run_is_started_in_the_name_of_the_user_unless_its_dag_is_paused(server: Server) -> None:
    pages = {"replan": {"current": "2", "rate": "2,000,000"}, "apply_plan": {"current": "2"}}
    with server.client(server.token("planner")) as client:
        for dag, form in pages.items():
            address, runs = f"/sluice/jobs/{JOB}/{dag.removesuffix('_plan')}", f"/api/v2/dags/{dag}/dagRuns"
            client.patch(f"/api/v2/dags/{dag}", json={"is_paused": True}).raise_for_status()
            answer = client.post(address, data=form)
            assert answer.status_code == 409 and "is paused" in answer.json()["detail"]
            client.patch(f"/api/v2/dags/{dag}", json={"is_paused": False}).raise_for_status()
            answer = client.post(address, data=form)
            assert (answer.status_code, answer.headers["location"]) == (303, f"/sluice/jobs/{JOB}/operate")
            (run,) = [one for one in client.get(runs).json()["dag_runs"] if one["state"] == "queued"]
            assert run["triggering_user_name"] == "planner" and run["conf"]["job"] == JOB
            assert run["conf"].get("rate", 2e6) == 2e6 and run["conf"].get("version", 2) == 2
        shown = client.get(f"/sluice/jobs/{JOB}/operate.json").json()["runs"]
    assert [(run["dag_id"], run["by"], run["state"]) for run in shown[:2]] == [
        ("apply_plan", "planner", "queued"), ("replan", "planner", "queued"),
    ]  # fmt: skip


def test_a_job_is_pinned_with_a_reason(server: Server, folder: Path) -> None:
    with server.client(server.token("planner")) as client:
        answer = client.post(f"/sluice/jobs/{JOB}/pin", data={"current": "2", "reason": "a <b>sale</b>"})
        assert answer.status_code == 303
        pin = pin_of(Workspace(folder), JOB)
        assert pin is not None and (pin.version, pin.by, pin.reason) == (2, "planner", "a <b>sale</b>")
        text = client.get(f"/sluice/jobs/{JOB}/operate", headers={"Accept": "text/html"}).text
        assert "Pinned to version 2" in text and "a &lt;b&gt;sale&lt;/b&gt;" in text
        assert client.post(f"/sluice/jobs/{JOB}/unpin").status_code == 303
        assert pin_of(Workspace(folder), JOB) is None


def test_an_autopilot_is_stopped_and_resumed_by_users_who_may_start_its_dag(
    server: Server, folder: Path, tokens: dict[str, tuple[str | None, set[int]]]
) -> None:
    files = AutopilotFiles(Workspace(folder), JOB)
    stop, resume = (f"/sluice/jobs/{JOB}/autopilot/{what}" for what in ("stop", "resume"))
    for name, (token, refused) in {**tokens, "a user who may only read": (server.token("reader"), {403})}.items():
        with server.client(token) as client:
            assert client.post(stop).status_code in refused, name
            assert client.post(resume).status_code in refused, name
    assert files.switch() is None
    with server.client(server.token("planner")) as client:
        assert client.post(stop, headers={"Sec-Fetch-Site": "cross-site"}).status_code == 403
        assert client.post(stop, content=b"reason=" + b"x" * 20_000).status_code == 413
        assert files.switch() is None
        answer = client.post(stop, data={"reason": "a <b>release</b>"})
        assert (answer.status_code, answer.headers["location"]) == (303, f"/sluice/jobs/{JOB}/autopilot")
        switch = files.switch()
        assert switch is not None and (switch.by, switch.reason) == ("planner", "a <b>release</b>")
        text = client.get(f"/sluice/jobs/{JOB}/autopilot", headers={"Accept": "text/html"}).text
        assert "Stopped by planner" in text and "a &lt;b&gt;release&lt;/b&gt;" in text
        assert client.post(resume, headers={"Sec-Fetch-Site": "cross-site"}).status_code == 403
        assert client.post(resume).status_code == 303
        assert files.switch() is None
        assert client.post("/sluice/jobs/no-such-job/autopilot/stop").status_code == 404


def test_nothing_else_can_be_changed_through_the_pages(server: Server) -> None:
    assert all(route.methods == {"GET"} for route in app().routes if route.path not in CHANGING)
    with server.client(server.token("reader")) as client:
        for address in _addresses().values():
            assert client.post(address).status_code == 405, address


def test_the_query_cannot_name_a_dag_that_the_user_may_see(server: Server) -> None:
    with server.client(server.token("nobody")) as client:
        for dag in ("replan", "~", "no-such-dag"):
            assert client.get(f"/sluice/jobs.json?dag_id={dag}").status_code == 403


def test_a_browser_without_a_login_is_led_to_it_and_back(server: Server) -> None:
    page = f"/sluice/jobs/{JOB}/difference?before=1&after=2"
    with server.client() as client:
        answer = client.get(page, headers={"Accept": "text/html"})
    assert (answer.status_code, answer.headers["location"]) == (303, f"/auth/login?next={quote(page, safe='')}")
    assert answer.text == ""


def test_a_browser_whose_session_is_not_valid_any_more_is_led_to_the_login(
    server: Server, tokens: dict[str, tuple[str | None, set[int]]]
) -> None:
    for name, (token, refused) in tokens.items():
        if token is not None:
            with server.client() as client:
                headers = {"Accept": "text/html", "Cookie": f"_token={token}"}
                answer = client.get("/sluice/", headers=headers)
            if refused == {401}:
                assert (answer.status_code, answer.headers["location"]) == (303, "/auth/login?next=%2Fsluice%2F"), name
                assert "_token=" in answer.headers["set-cookie"], "else the login page would be led back for ever"
            else:
                assert answer.status_code == 403, "logging in again would not help"


def test_every_answer_carries_the_security_headers(server: Server, reader: httpx.Client) -> None:
    answers = [reader.get("/"), reader.get("/static/pages.js"), reader.get("/jobs/x/versions"), reader.get("/nothing")]
    with server.client() as client:
        answers.append(client.get("/sluice/"))
    assert [answer.status_code for answer in answers] == [200, 200, 404, 404, 401]
    for answer in answers:
        policy = dict(part.split(" ", 1) for part in answer.headers["content-security-policy"].split("; "))
        assert policy["default-src"] == "'none'"
        assert policy["script-src"] == policy["connect-src"] == policy["frame-ancestors"] == "'self'"
        assert "unsafe-inline" not in policy["style-src"]
        assert answer.headers["x-content-type-options"] == "nosniff"
    assert [answer.headers["cache-control"] for answer in answers] == [
        "no-store", "private, max-age=604800, immutable", "no-store", "no-store", "no-store",
    ]  # fmt: skip


def test_no_page_holds_the_password_or_a_token(server: Server, reader: httpx.Client) -> None:
    for address in _addresses().values():
        text = reader.get(address.removeprefix("/sluice")).text
        assert PASSWORD not in text and server.secret not in text
