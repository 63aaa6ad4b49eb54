"""What Flink's overview says of jobs that have ended."""

import pytest

from flink_client.jobs.running import last_ended


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
