"""Kafka clusters by the name of a connection; librdkafka itself checks the settings."""

import json
from typing import Any

import pytest

from models.errors import InvalidInput
from testbeds.kafka.connection import KafkaConnection
from testbeds.kafka.named import kafka_connection

SECRET = "s3cr3t-of-this-test"


def named(monkeypatch: pytest.MonkeyPatch, **fields: Any) -> KafkaConnection:
    monkeypatch.setenv("AIRFLOW_CONN_MY_KAFKA", json.dumps({"conn_type": "sluice_kafka", **fields}))
    return kafka_connection("connection:my_kafka")


def test_login_and_password_are_those_of_sasl(monkeypatch: pytest.MonkeyPatch) -> None:
    extra = {"security.protocol": "SASL_SSL", "sasl.mechanism": "SCRAM-SHA-512", "ssl.ca.location": None}
    made = named(monkeypatch, host="b-1:9093,b-2:9093", login="ada", password=SECRET, extra=extra)
    assert made.bootstrap == "b-1:9093,b-2:9093"
    assert made.settings == {
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "SCRAM-SHA-512",
        "sasl.username": "ada",
        "sasl.password": SECRET,
    }
    assert SECRET not in repr(made)
    made.admin()  # librdkafka knows all of them


def test_a_connection_of_airflows_own_kafka_provider_serves(monkeypatch: pytest.MonkeyPatch) -> None:
    extra = {"bootstrap.servers": "b-1:9092", "socket.timeout.ms": 5000, "socket.keepalive.enable": True}
    made = named(monkeypatch, conn_type="kafka", extra=extra)
    assert (made.bootstrap, made.settings) == (
        "b-1:9092",
        {"socket.timeout.ms": "5000", "socket.keepalive.enable": "true"},
    )
    made.consumer().close()


def test_an_address_stays_one_and_settings_of_the_command_line_come_first(monkeypatch: pytest.MonkeyPatch) -> None:
    assert kafka_connection("b:9092", {"security.protocol": "SSL"}).settings == {"security.protocol": "SSL"}
    named(monkeypatch, host="b", port=9093, extra={"security.protocol": "SSL"})
    made = kafka_connection("connection:my_kafka", {"security.protocol": "PLAINTEXT"})
    assert (made.bootstrap, made.settings) == ("b:9093", {"security.protocol": "PLAINTEXT"})


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({}, "must have brokers, HOST:PORT"),
        ({"host": "b"}, "an address of a Kafka broker must be HOST:PORT, but got 'b'"),
        ({"host": "b:1", "login": "ada", "password": SECRET}, "'security.protocol'"),
        ({"host": "b:1", "login": "ada", "extra": {"security.protocol": "SSL"}}, "needs a password"),
        ({"host": "b:1", "extra": {"a": [SECRET]}}, "the extra field 'a' of the connection my_kafka must be a setting"),
    ],
)
def test_a_connection_that_is_incomplete_is_explained(
    monkeypatch: pytest.MonkeyPatch, fields: dict[str, Any], message: str
) -> None:
    with pytest.raises(InvalidInput, match=message) as said:
        named(monkeypatch, **fields)
    assert SECRET not in str(said.value)


def test_a_setting_that_librdkafka_refuses_does_not_show_passwords(monkeypatch: pytest.MonkeyPatch) -> None:
    extra = {"security.protocol": "SSL", "ssl.key.password": "3", "ssl.keystore.password": SECRET, "linger.ms": SECRET}
    made = named(monkeypatch, host="b:1", extra=extra)
    with pytest.raises(InvalidInput, match="a setting of the Kafka connection is wrong") as said:
        made.admin()
    assert SECRET not in str(said.value)
