"""Which job a question is about."""

import pytest

from sluice_pages.airflow_records import job_asked_about

JOBS = ("q5", "nexmark-q5", "nexmark-q11", "a.b")


@pytest.mark.parametrize(
    ("conf", "subject", "job"),
    [
        ({"job": "nexmark-q1"}, "Apply nexmark-q5@3, for 2,500,000 records/s?", "nexmark-q1"),
        ({"job": None}, "Apply nexmark-q5@3, for 2,500,000 records/s?", "nexmark-q5"),
        (None, "Plan nexmark-q11 with models:/nexmark-q11/4 (log)?", "nexmark-q11"),
        ({}, "Is it a.b?", "a.b"),
        ({}, "Apply a plan?", None),
        ({}, "Swap q5 and nexmark-q5?", None),
        ("job", "", None),
    ],
)
def test_a_question_is_about_the_job_it_was_asked_for(conf: object, subject: str, job: str | None) -> None:
    assert job_asked_about(conf, subject, JOBS) == job
