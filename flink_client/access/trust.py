"""TLS: whom to trust, what certificate to show, and faults of both in words."""

import os
import ssl
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Final

import httpx

from flink_client.access.server import Identity, ServerAccess
from models.errors import InvalidInput

CERTIFICATES: Final = "SSL_CERT_FILE"
_NOT_YET, _EXPIRED, _OTHER_NAME = 9, 10, (62, 64)
"""OpenSSL's codes of faults of a certificate: X509_V_ERR_..."""
_WANTED: Final = ("CERTIFICATE_REQUIRED", "HANDSHAKE_FAILURE")
"""Ends of OpenSSL's names of the alerts by which a server asks for a certificate of the client."""
_REFUSED: Final = (
    *("UNKNOWN_CA", "BAD_CERTIFICATE", "CERTIFICATE_EXPIRED", "CERTIFICATE_UNKNOWN", "CERTIFICATE_REVOKED"),
    "DECRYPT_ERROR",  # signed by another authority of the same name
)


def context_of(access: ServerAccess) -> ssl.SSLContext:
    """What httpx verifies the server with, and shows of the client.

    A context without a client's certificate is shared by all clients, until its file changes: loading the machine's authorities
    takes many times as long as asking a server on the same network.

    Raises:
        InvalidInput: a file that the connection or SSL_CERT_FILE names cannot be read.
    """
    if access.identity is None:
        named = str(access.authority or os.environ.get(CERTIFICATES, ""))
        return _shared(_Trust(named, os.environ.get("SSL_CERT_DIR"), _changed(named), access))
    context = _trusting(access)
    _show(context, access.identity, str(access.connection))
    return context


@dataclass(frozen=True)
class _Trust:
    """Whom to trust, as the files are now."""

    named: str
    folder: str | None
    changed: int
    access: ServerAccess = field(compare=False)


@lru_cache(maxsize=64)
def _shared(trust: _Trust) -> ssl.SSLContext:
    return _trusting(trust.access)


def _changed(named: str) -> int:
    """When a file was changed, in nanoseconds; 0 where there is none."""
    try:
        return Path(named).stat().st_mtime_ns if named else 0
    except OSError:
        return 0


def _trusting(access: ServerAccess) -> ssl.SSLContext:
    if access.authority is None:
        return _default()
    try:
        return ssl.create_default_context(cafile=access.authority)
    except OSError as error:
        raise InvalidInput(
            f"the certificates in {str(access.authority)!r:.200} cannot be read ({_why(error)}); the field 'ca_file' of "
            f"the connection {access.connection} must name a file of certificates (PEM)"
        ) from error


def context_of_issuer(access: ServerAccess) -> ssl.SSLContext:
    """What an authorization server is verified with: the machine's authorities, and that of the connection.

    Raises:
        InvalidInput: a file of certificates cannot be read.
    """
    context = _default()
    if access.authority is not None:
        context.load_verify_locations(cafile=access.authority)
    return context


def unreadable(error: OSError) -> InvalidInput:
    """The error where SSL_CERT_FILE names a file that cannot be read."""
    return InvalidInput(
        f"the certificates in {os.environ.get(CERTIFICATES)!r:.200} cannot be read ({error!s:.200}); the environment "
        f"variable {CERTIFICATES} must name a file of certificates (PEM)"
    )


def tls_fault(error: BaseException, access: ServerAccess, trust: str | None = None) -> str | None:
    """Why server or client could not be trusted, and what to do; None where that was not the fault.

    Args:
        trust: what to do where the server's authority is not known here; None: as for connections.
    """
    cause: BaseException | None = error
    while cause is not None and not isinstance(cause, ssl.SSLError):
        cause = cause.__cause__ or cause.__context__
    if cause is None:
        return None
    if not isinstance(cause, ssl.SSLCertVerificationError):
        return _alert(cause, access)
    shown = access.shown
    if cause.verify_code == _EXPIRED:
        return f"the certificate of {shown} has expired; renew it on the server"
    if cause.verify_code == _NOT_YET:
        return f"the certificate of {shown} is not valid yet; check the clocks of both machines"
    if cause.verify_code in _OTHER_NAME:
        return f"the certificate of {shown} is for another address ({cause.verify_message:.200}); use the one that it names"
    place = f"the environment variable {CERTIFICATES}"
    if access.connection is not None:
        place = f"the field 'ca_file' of the connection {access.connection}, or in {place}"
    trust = trust or f"name the file of its authority (PEM) in {place}"
    return f"the certificate of {shown} is of no authority that is trusted here ({cause.verify_message:.200}); {trust}"


def _alert(cause: ssl.SSLError, access: ServerAccess) -> str:
    reason = cause.reason or str(cause)
    own = f"'client_certificate' and 'client_key' of the connection {access.connection or 'NAME (connection:NAME)'}"
    if access.identity is None and reason.endswith(_WANTED):
        return f"{access.shown} asks for a certificate of the client ({reason}); name one in the fields {own}"
    if access.identity is not None and reason.endswith((*_WANTED, *_REFUSED)):
        return (
            f"{access.shown} does not accept the certificate {str(access.identity.certificate)!r:.200} ({reason}); name a "
            f"valid one of an authority that the server trusts in the fields {own}"
        )
    return f"no secure connection to {access.shown} ({reason}); check that this port speaks TLS"


def _default() -> ssl.SSLContext:
    try:
        return httpx.create_ssl_context()
    except OSError as error:
        raise unreadable(error) from error


def _show(context: ssl.SSLContext, identity: Identity, connection: str) -> None:
    password = identity.password.get_secret_value() if identity.password else ""
    try:
        # A password is always given, since OpenSSL would ask for one on the terminal.
        context.load_cert_chain(identity.certificate, identity.key, password=password)
    except (OSError, ValueError) as error:
        files = str(identity.certificate) if identity.key is None else f"{identity.certificate} and {identity.key}"
        raise InvalidInput(
            f"the client certificate in {files:.300} cannot be used ({_why(error)}); the fields 'client_certificate' and "
            f"'client_key' of the connection {connection} must name a certificate and its key (PEM), and "
            f"'client_key_password' the key's password if it has one"
        ) from error


def _why(error: Exception) -> str:
    if isinstance(error, ssl.SSLError):
        return "it is not PEM, or needs another password" if error.reason is None else error.reason
    return str(getattr(error, "strerror", None) or error)[:200]
