"""Validation of a job's operations."""

from typing import Any

import pytest
from pydantic import ValidationError

from models.errors import InvalidInput
from pipelines.inputs.operations.applying import Applying
from pipelines.inputs.operations.operations import Drifting, Operations, RateOrigin, Replanning, Reviewing
from pipelines.inputs.operations.repository import DeploymentRepository
from pipelines.inputs.parsing.files import validate_as

PROMETHEUS: dict[str, Any] = {"prometheus": {"url": "http://127.0.0.1:9090/", "query": "sum(events)"}}


def test_by_default_nothing_is_followed_or_applied() -> None:
    assert (Operations().replan, Operations().apply.mode) == (None, "never")


def test_an_address_loses_its_trailing_slash() -> None:
    origin = RateOrigin.model_validate(PROMETHEUS)
    assert origin.prometheus is not None and origin.prometheus.url == "http://127.0.0.1:9090"


def test_an_address_may_name_a_connection() -> None:
    named = "connection:my-flink.eu_1"
    assert Applying.model_validate({"mode": "alone", "flink": named}).flink == named


@pytest.mark.parametrize(
    ("rates", "message"),
    [
        ({}, "exactly one of 'prometheus' and 'flink' must be given, but neither is"),
        (PROMETHEUS | {"flink": {"url": "http://h:8081"}}, "exactly one .* but both are"),
        ({"flink": {"url": "ftp://h"}}, "must be an address such as http://host:9090, but got 'ftp://h'"),
        ({"flink": {"url": "http://"}}, "must be an address"),
        ({"flink": {"url": "http://h:80 80"}}, "spaces"),
        ({"flink": {"url": "http://me:secret@h:8081"}}, "must not hold a user or a password; name a connection"),
        ({"flink": {"url": "connection:"}}, "the name of a connection must be letters, digits"),
        ({"flink": {"url": "connection:a/b"}}, "as in connection:my_flink, but got 'a/b'"),
    ],
)
def test_rates_come_from_one_place_with_an_address(rates: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        RateOrigin.model_validate(rates)


@pytest.mark.parametrize(
    "wrong",
    [{"upwards": 0}, {"downwards": 1}, {"polls": 0}, {"poll_interval_s": 0}, {"cool_down_s": float("inf")}, {"x": 1}],
    ids=str,
)
def test_a_band_that_makes_no_sense_is_refused(wrong: dict[str, Any]) -> None:
    Replanning.model_validate({"rates": PROMETHEUS})
    with pytest.raises(ValidationError):
        Replanning.model_validate({"rates": PROMETHEUS, **wrong})


def test_allowing_to_apply_needs_an_address() -> None:
    with pytest.raises(ValidationError, match=r"with mode 'alone', 'flink' must be the cluster's REST address"):
        Applying.model_validate({"mode": "alone"})
    assert Applying.model_validate({"mode": "alone", "flink": "http://h:8081"}).observe_s == 60


def test_by_default_a_rule_reviews_models_and_none_is_used_unreviewed() -> None:
    review = Operations().review
    assert (review.mode, review.max_error_increase, review.max_slot_change) == ("rule", 0.0, None)
    assert not review.allow_unreviewed


@pytest.mark.parametrize(
    "wrong", [{"mode": "unknown"}, {"max_error_increase": -0.1}, {"max_slot_change": 0}, {"x": 1}], ids=str
)
def test_a_review_that_makes_no_sense_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        Reviewing.model_validate(wrong)


@pytest.mark.parametrize(
    "wrong", [{"tolerance": 0}, {"tolerance": 1}, {"confidence": 1}, {"windows": 0}, {"cool_down_s": -1}], ids=str
)
def test_drift_that_makes_no_sense_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        Drifting.model_validate(wrong)


REPOSITORY: dict[str, Any] = {"url": "git@example.com:team/flink-jobs.git", "path": "jobs/q5/sluice.yaml"}


def test_a_repository_needs_no_more_than_its_address_and_a_file() -> None:
    given = Applying.model_validate({"repository": REPOSITORY}).repository
    assert given is not None
    assert (given.target, given.branch("q5", 12), given.merge_s, given.deploy_s) == (None, "sluice/q5-12", 604800, 900)
    for url in (
        "/srv/git/jobs.git",
        "file:///srv/git/jobs.git",
        "ssh://git@example.com/jobs.git",
        "https://h/jobs.git",
    ):
        assert DeploymentRepository.model_validate(REPOSITORY | {"url": url}).url == url


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"url": "https://s3cret@example.com/jobs.git"}, "must not hold a user or a password; use a credential helper"),
        ({"url": "HTTPS://ann:s3cret@example.com/jobs.git"}, "must not hold a user or a password"),
        ({"url": "ssh://ann:s3cret@example.com/jobs.git"}, "must not hold a password"),
        ({"url": f"https://s3cret@example.com/{'x' * 600}"}, "must not hold a user or a password"),
        ({"url": f"https://example.com/{'x' * 600}"}, "must have at most 500 characters, but has 620"),
        ({"url": "../jobs.git"}, "must be an address or an absolute path of a repository, but got '../jobs.git'"),
        ({"url": "--upload-pack=touch"}, "must be an address or a path of a repository"),
        ({"path": "/etc/passwd"}, "must be a file inside the repository"),
        ({"path": "a/../../b"}, "must be a file inside the repository"),
        ({"target": "-x"}, "target"),
        ({"merge_s": 0}, "merge_s"),
    ],
)
def test_a_repository_that_cannot_be_used_is_named_without_its_secrets(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidInput, match=message) as refused:
        validate_as({"repository": REPOSITORY | fields}, Applying, "a job file")
    assert "s3cret" not in str(refused.value)


@pytest.mark.parametrize("other", [{"export": "overrides"}, {"program": "program.yaml"}])
def test_a_plan_goes_one_way(other: dict[str, Any]) -> None:
    with pytest.raises(ValidationError, match="'export' and 'program' are for jobs without a 'repository'"):
        Applying.model_validate({"repository": REPOSITORY, **other})
