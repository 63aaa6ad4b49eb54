"""A Kafka cluster by its address, or by the name of a connection."""

from collections.abc import Mapping
from typing import Final

from flink_client.access.connection import NamedConnection
from flink_client.access.lookup import find_connection
from flink_client.address import connection_name
from models.errors import InvalidInput
from testbeds.kafka.connection import KafkaConnection

_BOOTSTRAP: Final = "bootstrap.servers"


def kafka_connection(address: str, settings: Mapping[str, str] | None = None) -> KafkaConnection:
    """
    Args:
        address: `host:port`, several separated by commas, or `connection:NAME`.
        settings: of librdkafka; they replace those of the connection.

    Raises:
        InvalidInput: that is neither, there is no such connection, or it is incomplete.
    """
    name = connection_name(address)
    if name is None:
        return KafkaConnection(address, dict(settings or {}))
    made = kafka_by(find_connection(name))
    return KafkaConnection(made.bootstrap, {**made.settings, **(settings or {})})


def kafka_by(connection: NamedConnection) -> KafkaConnection:
    """A connection whose host, or setting `bootstrap.servers`, has the brokers, and whose extra fields are librdkafka's
    settings, as in Airflow's own provider of Kafka. Login and password are those of SASL.

    Raises:
        InvalidInput: it has no brokers, or half of what SASL needs.
    """
    settings = {
        key: _setting(connection.name, key, value) for key, value in connection.extra.items() if value is not None
    }
    bootstrap = settings.pop(_BOOTSTRAP, "") or connection.host
    if connection.port is not None and bootstrap and "," not in bootstrap and ":" not in bootstrap:
        bootstrap = f"{bootstrap}:{connection.port}"
    if not bootstrap:
        raise InvalidInput(
            f"the connection {connection.name} must have brokers, HOST:PORT with commas between several, as its host; add them"
        )
    if connection.login:
        if connection.password is None or "security.protocol" not in settings:
            raise InvalidInput(
                f"the connection {connection.name} has a login, so it needs a password and the extra field "
                f"'security.protocol' (SASL_SSL or SASL_PLAINTEXT); add what is missing"
            )
        settings["sasl.username"] = connection.login
        settings["sasl.password"] = connection.password.get_secret_value()
        settings.setdefault("sasl.mechanism", "PLAIN")
    return KafkaConnection(bootstrap, {key: value for key, value in settings.items() if value})


def _setting(name: str, key: str, value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if not isinstance(value, str | int | float):
        raise InvalidInput(
            f"the extra field {key!r} of the connection {name} must be a setting of librdkafka; correct it"
        )
    return str(value)
