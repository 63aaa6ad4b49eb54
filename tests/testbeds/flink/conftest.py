"""Flink and the kit, as the user's cache holds them."""

from pathlib import Path

import pytest

from testbeds.flink.local.distribution import flink_home
from testbeds.flink.local.kit import kit_jar
from testbeds.local.jdk import find_jdk


@pytest.fixture(scope="session")
def flink() -> Path:
    """FLINK_HOME."""
    return flink_home()


@pytest.fixture(scope="session")
def jdk() -> Path:
    return find_jdk()


@pytest.fixture(scope="session")
def kit(flink: Path, jdk: Path) -> Path:
    """Jar of the Java kit."""
    return kit_jar(flink, jdk)
