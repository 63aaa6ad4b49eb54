"""API servers with word count deployed: one that answers as an API server does, and a real one."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from on_kubernetes.api_server import ApiServer
from on_kubernetes.deployed_resource import Operator, document
from on_kubernetes.server import ADMIN, FakeKubernetes

Server = FakeKubernetes | ApiServer


@pytest.fixture(params=["answering", pytest.param("real", marks=pytest.mark.long)])
def server(request: pytest.FixtureRequest) -> Iterator[Server]:
    if request.param == "real":
        yield request.getfixturevalue("api_server")
        return
    with FakeKubernetes() as made:
        yield made


@pytest.fixture
def deployed() -> dict[str, Any]:
    return document()


@pytest.fixture
def operator(server: Server, tmp_path: Path, deployed: dict[str, Any]) -> Iterator[Operator]:
    """It has deployed word count, which is stable."""
    made = Operator(str(server.kubeconfig(tmp_path, ADMIN)))
    made.deploy(deployed)
    yield made
    made.remove()
    made.close()
