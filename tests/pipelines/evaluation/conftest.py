"""A short evaluation on the real simulator: two jobs' worth of replays in a second."""

from collections.abc import Callable
from pathlib import Path

import pytest

from pipelines.arena.evaluation import Evaluation, EvaluationRequest, evaluate
from pipelines.workspace import Workspace


@pytest.fixture(scope="session")
def request_of() -> Callable[..., EvaluationRequest]:
    """Makes requests of six minutes."""

    def make(**given: object) -> EvaluationRequest:
        short = {"jobs": ["nexmark-q1"], "workloads": ["cosine"], "policies": ["ds2", "hpa-cpu"], "minutes": 6}
        return EvaluationRequest.model_validate(short | given)

    return make


@pytest.fixture(scope="session")
def asked(request_of: Callable[..., EvaluationRequest]) -> EvaluationRequest:
    return request_of(workloads=["cosine", "random"], seeds=2)


@pytest.fixture(scope="session")
def kept_in(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder of the workspace that `evaluated` left its replays in."""
    return tmp_path_factory.mktemp("evaluated")


@pytest.fixture(scope="session")
def evaluated(asked: EvaluationRequest, kept_in: Path) -> Evaluation:
    return evaluate(asked, Workspace(kept_in), processes=1)
