"""Whether a job runs, and what Flink's overview says of jobs that have ended."""

import pytest

from flink.steered import SimulatedClock, SteeredFlink, SteeredJob
from flink_client.jobs.running import NotRunning, awaited, last_ended
from flink_client.rest.client import FlinkRest


def job(name: str, state: str, end: int, duration: int = 0) -> dict[str, object]:
    return {"jid": "0" * 32, "name": name, "state": state, "end-time": end, "duration": duration}


@pytest.mark.parametrize(
    ("jobs", "said"),
    [
        ([], None),
        ([job("runs", "RUNNING", -1, 5000)], None),
        ([job("sessions", "FINISHED", 7, 940)], "'sessions' has finished after 0.9 s: all of its input was bounded"),
        (
            [job("sessions", "FINISHED", 7), job("clicks", "CANCELED", 9, 2_000_000)],
            "'clicks' is canceled after 2,000.0 s",
        ),
    ],
)
def test_the_job_that_ended_last_is_named_with_how_it_ended(jobs: list[dict[str, object]], said: str | None) -> None:
    found = last_ended(jobs)
    assert found is None if said is None else found is not None and found.startswith(said)


@pytest.mark.parametrize(("state", "ended"), [("RESTARTING", False), ("FAILING", False), ("FAILED", True)])
def test_a_job_is_waited_for_until_it_has_ended_by_one_look_at_its_state(state: str, ended: bool) -> None:
    """A second look could fail, which says nothing of the job."""
    job = SteeredJob(SimulatedClock(), state=state)
    with SteeredFlink(job) as flink, FlinkRest(flink.url, patience_s=0.0) as rest:

        def look_once(_method: str, path: str) -> None:
            flink.answers = flink.requests.count(("GET", f"/jobs/{job.id}")) < 2

        flink.before = look_once
        if ended:
            with pytest.raises(NotRunning, match="is failed: no reason was given"):
                awaited(rest, job.id, {})
        else:
            found, why = awaited(rest, job.id, {})
            assert found is None and why is not None and f"is {state.lower()}" in why
