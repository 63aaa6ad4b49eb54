"""Hooks of Sluice's connection types. Each opens the client that Sluice itself uses, and tests it with one request."""

from collections.abc import Callable
from typing import Any

from airflow.sdk import BaseHook

from flink_client.metrics.prometheus_api import Prometheus
from flink_client.rest import FlinkRest
from models.errors import SluiceError
from testbeds.kafka.connection import ANSWER_S, KafkaConnection
from testbeds.kafka.named import kafka_connection

_TEST_S = 10.0


class FlinkHook(BaseHook):
    """The REST interface of a Flink cluster."""

    conn_name_attr = "flink_conn_id"
    default_conn_name = "flink_default"
    conn_type = "sluice_flink"
    hook_name = "Flink REST (Sluice)"

    def __init__(self, flink_conn_id: str = default_conn_name, **options: Any) -> None:
        super().__init__(**options)
        self.flink_conn_id = flink_conn_id

    def get_conn(self) -> FlinkRest:
        """A client, which the caller closes."""
        return FlinkRest(f"connection:{self.flink_conn_id}", timeout_s=_TEST_S, patience_s=0.0)

    def test_connection(self) -> tuple[bool, str]:
        """Read Flink's version; nothing is changed."""

        def test() -> str:
            with self.get_conn() as rest:
                return f"Flink {rest.flink_version()} at {rest.url}"

        return _tested(test)


class PrometheusHook(BaseHook):
    """A Prometheus server."""

    conn_name_attr = "prometheus_conn_id"
    default_conn_name = "prometheus_default"
    conn_type = "sluice_prometheus"
    hook_name = "Prometheus (Sluice)"

    def __init__(self, prometheus_conn_id: str = default_conn_name, **options: Any) -> None:
        super().__init__(**options)
        self.prometheus_conn_id = prometheus_conn_id

    def get_conn(self) -> Prometheus:
        """A client, which the caller closes."""
        return Prometheus(f"connection:{self.prometheus_conn_id}", timeout_s=_TEST_S)

    def test_connection(self) -> tuple[bool, str]:
        """Evaluate a query that every Prometheus answers."""

        def test() -> str:
            with self.get_conn() as prometheus:
                prometheus.query("vector(1)")
                return f"Prometheus at {prometheus.url}"

        return _tested(test)


class KafkaHook(BaseHook):
    """A Kafka cluster, which is only read."""

    conn_name_attr = "kafka_conn_id"
    default_conn_name = "sluice_kafka_default"
    conn_type = "sluice_kafka"
    hook_name = "Kafka (Sluice)"

    def __init__(self, kafka_conn_id: str = default_conn_name, **options: Any) -> None:
        super().__init__(**options)
        self.kafka_conn_id = kafka_conn_id

    def get_conn(self) -> KafkaConnection:
        return kafka_connection(f"connection:{self.kafka_conn_id}")

    def test_connection(self) -> tuple[bool, str]:
        """List the brokers."""

        def test() -> str:
            kafka = self.get_conn()
            with kafka.answers():
                brokers = kafka.admin().list_topics(timeout=ANSWER_S).brokers
            return f"{len(brokers)} Kafka brokers at {kafka.bootstrap}"

        return _tested(test)


def _tested(test: Callable[[], str]) -> tuple[bool, str]:
    """Airflow shows the sentence beside the button."""
    try:
        return True, test()
    except (SluiceError, OSError) as error:
        return False, str(error)
