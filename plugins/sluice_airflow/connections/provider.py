"""What Airflow loads of Sluice's connection types and assets. Every process of Airflow loads this file: it imports nothing."""

from typing import Any, Final

_TEXT: Final = {"type": ["string", "null"]}
_SECRET: Final = {"type": ["string", "null"], "format": "password"}
_HOOKS: Final = "sluice_airflow.connections.hooks"


def get_provider_info() -> dict[str, Any]:
    """Airflow's description of a provider (`airflow/provider_info.schema.json`)."""
    return {
        "package-name": "sluice",
        "name": "Sluice",
        "description": "Capacity planning for stream processing.",
        "connection-types": [
            _http("sluice_flink", f"{_HOOKS}.FlinkHook", "Flink REST (Sluice)", "https://jobmanager:8081"),
            _http("sluice_prometheus", f"{_HOOKS}.PrometheusHook", "Prometheus (Sluice)", "https://prometheus:9090"),
            _http("sluice_mlflow", f"{_HOOKS}.MlflowHook", "MLflow (Sluice)", "https://mlflow:5000"),
            _http("sluice_kubernetes", f"{_HOOKS}.KubernetesHook", "Kubernetes (Sluice)", "https://kubernetes:6443"),
            _kafka(),
        ],
        "asset-uris": [
            {"schemes": ["x-sluice"], "handler": None, "to_openlineage_converter": "sluice_airflow.lineage.dataset_of"}
        ],
    }


def _http(kind: str, hook: str, name: str, example: str) -> dict[str, Any]:
    return {
        "connection-type": kind,
        "hook-class-name": hook,
        "hook-name": name,
        "ui-field-behaviour": {
            "hidden-fields": ["schema", "port", "extra"],
            "relabeling": {
                "host": "URL",
                "login": "User or OAuth client",
                "password": "Password, token or client secret",
            },
            "placeholders": {"host": example},
        },
        "conn-fields": {
            "ca_file": _field(
                "CA file", _TEXT, "Certificates (PEM) of the only authority to trust; default: the machine's."
            ),
            "client_certificate": _field("Client certificate", _TEXT, "File (PEM), where the server asks for one."),
            "client_key": _field("Client key", _TEXT, "File (PEM); default: in the file of the certificate."),
            "client_key_password": _field("Client key's password", _SECRET, "If the key has one."),
            "token_url": _field(
                "OAuth token URL",
                _TEXT,
                "Token endpoint, where the user is the client of an OAuth authorization server.",
            ),
            "scope": _field("OAuth scope", _TEXT, "Scopes of the token, with spaces between them."),
        },
    }


def _kafka() -> dict[str, Any]:
    return {
        "connection-type": "sluice_kafka",
        "hook-class-name": f"{_HOOKS}.KafkaHook",
        "hook-name": "Kafka (Sluice)",
        "ui-field-behaviour": {
            "hidden-fields": ["schema", "port"],
            "relabeling": {"host": "Brokers", "login": "SASL user", "password": "SASL password"},
            "placeholders": {"host": "broker-1:9093,broker-2:9093", "extra": '{"sasl.mechanism": "SCRAM-SHA-512"}'},
        },
        "conn-fields": {
            "security.protocol": _field(
                "Security protocol",
                _TEXT | {"enum": ["PLAINTEXT", "SSL", "SASL_SSL", "SASL_PLAINTEXT", None]},
                "As Kafka's clients call it.",
            ),
            "ssl.ca.location": _field("CA file", _TEXT, "Certificates (PEM) of the authority to trust."),
            "ssl.certificate.location": _field("Client certificate", _TEXT, "File (PEM), if the brokers ask for one."),
            "ssl.key.location": _field("Client key", _TEXT, "File (PEM)."),
            "ssl.key.password": _field("Client key's password", _SECRET, "If the key has one."),
        },
    }


def _field(label: str, schema: dict[str, Any], description: str) -> dict[str, Any]:
    return {"label": label, "schema": schema, "description": description}
