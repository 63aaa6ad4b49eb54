"""Hooks of Sluice's connection types. Each opens the client that Sluice itself uses, and tests it with one request."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from airflow.sdk import BaseHook

from flink_client.metrics.prometheus_api import Prometheus
from flink_client.rest.client import FlinkRest
from models.errors import SluiceError
from testbeds.kafka.connection import ANSWER_S, KafkaConnection
from testbeds.kafka.named import kafka_connection

if TYPE_CHECKING:
    from flink_client.kubernetes.api import KubernetesApi

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


class MlflowHook(BaseHook):
    """An MLflow server."""

    conn_name_attr = "mlflow_conn_id"
    default_conn_name = "sluice_mlflow_default"
    conn_type = "sluice_mlflow"
    hook_name = "MLflow (Sluice)"

    def __init__(self, mlflow_conn_id: str = default_conn_name, **options: Any) -> None:
        super().__init__(**options)
        self.mlflow_conn_id = mlflow_conn_id

    def get_conn(self) -> Any:
        """MLflow's client; from then on all clients of this process show these credentials to this server."""
        from pipelines.registry.tracking import tracking_by

        return tracking_by(f"connection:{self.mlflow_conn_id}").client

    def test_connection(self) -> tuple[bool, str]:
        """List an experiment. MLflow itself, which takes seconds to import, is not needed for that."""

        def test() -> str:
            from pipelines.registry.access import check_mlflow, mlflow_access

            access = mlflow_access(f"connection:{self.mlflow_conn_id}")
            check_mlflow(access, _TEST_S)
            return f"MLflow at {access.url}"

        return _tested(test)


class KubernetesHook(BaseHook):
    """A Kubernetes API server, as far as FlinkDeployments."""

    conn_name_attr = "kubernetes_conn_id"
    default_conn_name = "sluice_kubernetes_default"
    conn_type = "sluice_kubernetes"
    hook_name = "Kubernetes (Sluice)"

    def __init__(self, kubernetes_conn_id: str = default_conn_name, **options: Any) -> None:
        super().__init__(**options)
        self.kubernetes_conn_id = kubernetes_conn_id

    def get_conn(self) -> "KubernetesApi":
        """A client, which the caller closes."""
        from flink_client.kubernetes.api import KubernetesApi

        return KubernetesApi(f"connection:{self.kubernetes_conn_id}")

    def test_connection(self) -> tuple[bool, str]:
        """Read the server's version, which it does not say to a token that it does not accept."""

        def test() -> str:
            with self.get_conn() as api:
                version = api.version()
                return f"Kubernetes {version or '(this account may not read its version)'} at {api.url}"

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
    except ModuleNotFoundError as error:
        return (
            False,
            f"{error.name} is not installed where Airflow's API server runs; install Sluice's extra for it",
        )
