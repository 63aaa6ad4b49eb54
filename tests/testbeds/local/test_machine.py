"""Ports for servers."""

import socket
from pathlib import Path

import pytest

from testbeds.local import machine
from testbeds.local.machine import LOOPBACK, free_port


def test_a_port_is_none_that_a_connection_gets() -> None:
    with socket.socket() as server:
        server.bind((LOOPBACK, free_port()))
        server.listen()
        with socket.create_connection(server.getsockname()) as connection:
            assert server.getsockname()[1] < connection.getsockname()[1]


def test_a_port_that_is_taken_is_not_given(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    only = free_port()
    connections = tmp_path / "ip_local_port_range"
    connections.write_text(f"{only + 1}\t60999\n")
    monkeypatch.setattr(machine, "_LOWEST_PORT", only)
    monkeypatch.setattr(machine, "_PORTS_OF_CONNECTIONS", connections)
    assert free_port() == only
    with socket.socket() as taken:
        taken.bind((LOOPBACK, only))
        assert free_port() != only


def test_where_connections_get_all_ports_a_server_gets_one_of_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    connections = tmp_path / "ip_local_port_range"
    connections.write_text("1024\t65535\n")
    monkeypatch.setattr(machine, "_PORTS_OF_CONNECTIONS", connections)
    assert free_port() > 1024
