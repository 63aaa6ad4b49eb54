"""What stands before a Flink in production: a server that speaks TLS, asks for a token, and passes requests on."""

import ssl
import urllib.request
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler
from ipaddress import ip_address
from pathlib import Path
from urllib.error import HTTPError

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from answering import AnsweringServer

DAY = timedelta(days=1)


@dataclass(frozen=True)
class Certificate:
    """A certificate of 127.0.0.1 and its private authority."""

    authority: Path
    """Of the authority (PEM)."""
    server: Path
    """Certificate and key (PEM)."""


def certificate(folder: Path, *, days: tuple[int, int] = (-1, 1), address: str = "127.0.0.1") -> Certificate:
    """A new one.

    Args:
        days: from when to when it is valid, from today on.
    """
    folder.mkdir(parents=True, exist_ok=True)
    now = datetime.now(UTC)
    key_of_authority, key = (ec.generate_private_key(ec.SECP256R1()) for _ in range(2))
    issuer = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "an authority of this test")])
    authority = (
        x509.CertificateBuilder()
        .subject_name(issuer)
        .issuer_name(issuer)
        .public_key(key_of_authority.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - 9 * DAY)
        .not_valid_after(now + 9 * DAY)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key_of_authority, hashes.SHA256())
    )
    server = (
        x509.CertificateBuilder()
        .subject_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "a Flink")]))
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now + days[0] * DAY)
        .not_valid_after(now + days[1] * DAY)
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ip_address(address))]), critical=False)
        .sign(key_of_authority, hashes.SHA256())
    )
    pem = serialization.Encoding.PEM
    private = key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    made = Certificate(folder / "authority.pem", folder / "server.pem")
    made.authority.write_bytes(authority.public_bytes(pem))
    made.server.write_bytes(server.public_bytes(pem) + private)
    return made


class TlsProxy(AnsweringServer):
    """Passes requests with the right token on to `target`."""

    def __init__(self, target: str, of: Certificate, token: str) -> None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(of.server)
        self._target, self._token = target, token
        self.methods: list[str] = []
        """Of the requests that were passed on."""
        super().__init__(self._pass_on, tls=context)

    def _pass_on(self, request: BaseHTTPRequestHandler, body: bytes) -> tuple[int, object]:
        if request.headers.get("Authorization") != f"Bearer {self._token}":
            return 401, "<html>Log in first</html>"
        self.methods.append(str(request.command))
        passed = urllib.request.Request(self._target + request.path, body or None, method=request.command)
        try:
            with urllib.request.urlopen(passed, timeout=60) as answer:
                return answer.status, answer.read()
        except HTTPError as error:
            return error.code, error.read()
