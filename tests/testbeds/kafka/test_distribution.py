import pytest

from models.errors import InvalidInput
from testbeds.kafka.distribution import connector_jars


@pytest.mark.slow
@pytest.mark.parametrize(
    ("flink", "jar"),
    [("1.20.5", "flink-connector-kafka-3.4.0-1.20.jar"), ("2.3.0", "flink-sql-connector-kafka-4.0.1-2.0.jar")],
)
def test_the_connector_is_that_of_the_version(flink: str, jar: str) -> None:
    assert (connector_jars(flink) / jar).is_file()


def test_a_version_without_connector_is_refused() -> None:
    with pytest.raises(InvalidInput, match=r"Flink 1\.20 and 2\.x, but not for 1\.19\.1"):
        connector_jars("1.19.1")
