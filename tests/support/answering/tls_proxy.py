"""What stands before a Flink in production: a server that speaks TLS, asks for credentials, and passes requests on."""

import base64
import ssl
import urllib.request
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler
from ipaddress import ip_address
from pathlib import Path
from urllib.error import HTTPError
from urllib.parse import parse_qs

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from answering.server import AnsweringServer

DAY = timedelta(days=1)
SIGNS_OTHERS = x509.KeyUsage(
    key_cert_sign=True, crl_sign=True, digital_signature=False, content_commitment=False, key_encipherment=False,
    data_encipherment=False, key_agreement=False, encipher_only=False, decipher_only=False,
)  # fmt: skip


@dataclass(frozen=True)
class Certificate:
    """A certificate of 127.0.0.1 and its private authority."""

    authority: Path
    """Of the authority (PEM)."""
    server: Path
    """Certificate and key (PEM)."""
    client: Path
    """Of a client, by the same authority (PEM)."""
    client_key: Path


def certificate(folder: Path, *, days: tuple[int, int] = (-1, 1), address: str = "127.0.0.1") -> Certificate:
    """A new one, with the extensions that Python 3.13 asks for (RFC 5280).

    Args:
        days: from when to when it is valid, from today on.
    """
    folder.mkdir(parents=True, exist_ok=True)
    now = datetime.now(UTC)
    key_of_authority, key, key_of_client = (ec.generate_private_key(ec.SECP256R1()) for _ in range(3))
    issuer = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "an authority of this test")])
    public = key_of_authority.public_key()
    authority = (
        x509.CertificateBuilder()
        .subject_name(issuer)
        .issuer_name(issuer)
        .public_key(public)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - 9 * DAY)
        .not_valid_after(now + 9 * DAY)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .add_extension(SIGNS_OTHERS, critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(public), critical=False)
        .sign(key_of_authority, hashes.SHA256())
    )
    signed = (
        x509.CertificateBuilder()
        .issuer_name(issuer)
        .not_valid_before(now + days[0] * DAY)
        .not_valid_after(now + days[1] * DAY)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(public), critical=False)
    )
    server = (
        signed.subject_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "a Flink")]))
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ip_address(address))]), critical=False)
        .sign(key_of_authority, hashes.SHA256())
    )
    client = (
        signed.subject_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "a client")]))
        .public_key(key_of_client.public_key())
        .serial_number(x509.random_serial_number())
        .sign(key_of_authority, hashes.SHA256())
    )
    pem = serialization.Encoding.PEM
    private, private_of_client = (
        one.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
        for one in (key, key_of_client)
    )
    made = Certificate(*(folder / f"{name}.pem" for name in ("authority", "server", "client", "client-key")))
    made.authority.write_bytes(authority.public_bytes(pem))
    made.server.write_bytes(server.public_bytes(pem) + private)
    made.client.write_bytes(client.public_bytes(pem))
    made.client_key.write_bytes(private_of_client)
    return made


def server_context(of: Certificate, *, asks_for_certificate: bool = False) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(of.server)
    if asks_for_certificate:
        context.verify_mode = ssl.CERT_REQUIRED
        context.load_verify_locations(of.authority)
    return context


class TlsProxy(AnsweringServer):
    """Passes requests with the right credentials on to `target`."""

    def __init__(
        self,
        target: str,
        of: Certificate,
        token: str | None = None,
        *,
        authorization: str | None = None,
        asks_for_certificate: bool = False,
    ) -> None:
        """
        Args:
            token: the bearer token that it asks for.
            authorization: the whole header that it asks for; without both, nothing is asked for.
            asks_for_certificate: of the client, by the authority of its own.
        """
        self._target = target
        self.wanted = f"Bearer {token}" if token else authorization
        self.passed_as: str | None = None
        """Header by which `target` is asked; None: without."""
        self.read_only = False
        """Whether these credentials are let through with GET alone; the answer quotes them, as careless servers do."""
        self.expired = False
        self.methods: list[str] = []
        """Of the requests that were passed on."""
        super().__init__(self._pass_on, tls=server_context(of, asks_for_certificate=asks_for_certificate))

    def _pass_on(self, request: BaseHTTPRequestHandler, body: bytes) -> tuple[int, object] | None:
        given = request.headers.get("Authorization")
        if self.expired:
            request.send_response(401)
            request.send_header(
                "WWW-Authenticate", 'Bearer error="invalid_token", error_description="The token expired"'
            )
            request.send_header("Content-Length", "0")
            request.end_headers()
            return None
        if self.wanted is not None and given != self.wanted:
            return 401, "<html>Log in first</html>"
        if self.read_only and request.command != "GET":
            return 403, f"read only: {given}"
        self.methods.append(str(request.command))
        kind = {"Content-Type": request.headers.get("Content-Type", "application/json")}
        if self.passed_as is not None:
            kind["Authorization"] = self.passed_as
        passed = urllib.request.Request(self._target + request.path, body or None, kind, method=request.command)
        try:
            with urllib.request.urlopen(passed, timeout=60) as answer:
                return answer.status, answer.read()
        except HTTPError as error:
            return error.code, error.read()


class Issuer(AnsweringServer):
    """An authorization server: gives `token-1`, `token-2`, ... to one client (RFC 6749, section 4.4)."""

    def __init__(self, of: Certificate, client: str, secret: str, *, expires_in: int = 3600) -> None:
        self.given = 0
        self.asked: list[dict[str, list[str]]] = []
        basic = "Basic " + base64.b64encode(f"{client}:{secret}".encode()).decode()

        def answer(request: BaseHTTPRequestHandler, body: bytes) -> tuple[int, object]:
            self.asked.append(parse_qs(body.decode()))
            if request.headers.get("Authorization") != basic:
                return 401, {"error": "invalid_client", "error_description": f"{secret} would be right"}
            self.given += 1
            return 200, {"access_token": f"token-{self.given}", "token_type": "Bearer", "expires_in": expires_in}

        super().__init__(answer, tls=server_context(of))
