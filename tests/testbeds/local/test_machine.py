"""Ports for servers."""

import socket
from collections.abc import Callable
from pathlib import Path

import pytest

from testbeds.local import machine
from testbeds.local.machine import LOOPBACK, free_port

Connections = Callable[[int], None]


@pytest.fixture
def connections_from(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Connections:
    """Sets the first port that Linux gives to connections, as free_port reads it."""
    stated = tmp_path / "ip_local_port_range"
    monkeypatch.setattr(machine, "_PORTS_OF_CONNECTIONS", stated)

    def state(first: int) -> None:
        stated.write_text(f"{first}\t60999\n")

    return state


def test_a_port_is_none_that_a_connection_gets(connections_from: Connections) -> None:
    connections_from(10_200)
    assert {free_port() in range(10_000, 10_200) for _ in range(20)} == {True}


def test_a_port_that_is_taken_is_not_given(connections_from: Connections, monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket() as taken:
        taken.bind((LOOPBACK, 0))
        only = taken.getsockname()[1]
        monkeypatch.setattr(machine, "_LOWEST_PORT", only)
        connections_from(only + 1)
        assert free_port() != only
    assert free_port() == only


def test_where_connections_get_all_ports_a_server_gets_one_of_them(connections_from: Connections) -> None:
    connections_from(1024)
    with socket.socket() as server:
        server.bind((LOOPBACK, free_port()))
