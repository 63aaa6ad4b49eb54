"""A broker for all tests of testbeds."""

import shutil
from collections.abc import Iterator

import pytest

from testbeds.kafka.broker import LocalBroker


@pytest.fixture(scope="session")
def broker() -> Iterator[LocalBroker]:
    if shutil.which("mvn") is None:
        pytest.skip("Maven is not installed; apt-get install maven")
    with LocalBroker() as made:
        made.start()
        yield made
