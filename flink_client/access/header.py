"""Credentials as the header Authorization, for clients that are not httpx's."""

from base64 import b64encode
from collections.abc import Callable
from typing import TYPE_CHECKING

from flink_client.access.credentials import BearerToken, ClientCredentials, TokenInVariable, UserPassword
from flink_client.access.server import ServerAccess
from flink_client.access.trust import context_of_issuer, tls_fault

if TYPE_CHECKING:
    from flink_client.access.issuer import ClientTokens


def authorization_of(access: ServerAccess) -> Callable[[], str] | None:
    """What gives the header's value for a request, with a token that has not expired; None: a request carries none.

    Raises:
        InvalidInput: a token cannot be sent.
    """
    match access.credentials:
        case TokenInVariable() | BearerToken() as one:
            header = f"Bearer {one.token()}"
            return lambda: header
        case UserPassword(user=user, password=password):
            basic = b64encode(f"{user}:{password.get_secret_value()}".encode()).decode()
            return lambda: f"Basic {basic}"
        case ClientCredentials() as client:
            tokens = client_tokens(access, client)
            return lambda: f"Bearer {tokens.token()}"
    return None


def client_tokens(access: ServerAccess, client: ClientCredentials) -> "ClientTokens":
    """The tokens of an OAuth client of this server.

    Raises:
        InvalidInput: a file of certificates cannot be read.
    """
    from flink_client.access.issuer import ClientTokens

    issuer = ServerAccess(client.token_url, connection=client.connection)
    return ClientTokens(client, context_of_issuer(access), lambda error: tls_fault(error, issuer))
