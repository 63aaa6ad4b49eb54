"""Tokens of an OAuth 2 client: fetched from the authorization server, kept in memory until they expire."""

import ssl
import threading
from collections.abc import Callable, Generator, Mapping
from typing import Any, Final

import httpx
from authlib.oauth2.base import OAuth2Error
from authlib.oauth2.client import OAuth2Client

from flink_client.access.credentials import ClientCredentials
from models.errors import SluiceError

_TIMEOUT_S: Final = 30.0
_EARLY_S: Final = 30.0
"""A token is renewed this long before it expires, so that it is valid when it arrives."""


class ClientTokens(httpx.Auth):
    """Adds a bearer token to requests; one that the server does not accept is replaced once, since it may be revoked."""

    def __init__(
        self, credentials: ClientCredentials, context: ssl.SSLContext, fault: Callable[[Exception], str | None]
    ) -> None:
        """
        Args:
            context: what the authorization server is verified with.
            fault: words for a fault of TLS.
        """
        self._of, self._context, self._fault = credentials, context, fault
        self._token: Any = None
        self._lock = threading.Lock()

    def sync_auth_flow(self, request: httpx.Request) -> Generator[httpx.Request, httpx.Response, None]:
        token, is_new = self._current()
        request.headers["Authorization"] = f"Bearer {token}"
        answer = yield request
        if answer.status_code == httpx.codes.UNAUTHORIZED and not is_new:
            request.headers["Authorization"] = f"Bearer {self._renewed(token)}"
            yield request

    def token(self) -> str:
        """A token that has not expired.

        Raises:
            SluiceError: the authorization server gives none.
        """
        return self._current()[0]

    def _current(self) -> tuple[str, bool]:
        with self._lock:
            if self._token is not None and not self._token.is_expired(leeway=_EARLY_S):
                return str(self._token["access_token"]), False
            self._token = self._fetched()
            return str(self._token["access_token"]), True

    def _renewed(self, refused: str) -> str:
        with self._lock:
            if self._token["access_token"] == refused:
                self._token = self._fetched()
            return str(self._token["access_token"])

    def _fetched(self) -> Any:
        """Raises SluiceError: the authorization server does not answer, or refuses the client."""
        of, secret = self._of, self._of.secret.get_secret_value()
        with httpx.Client(verify=self._context, timeout=_TIMEOUT_S, follow_redirects=False) as session:
            client = OAuth2Client(session, of.client, secret, scope=of.scope or None)
            try:
                token = client.fetch_token(
                    of.token_url, grant_type="client_credentials", auth=httpx.BasicAuth(of.client, secret)
                )
            except OAuth2Error as error:
                said = f"{error.error}: {error.description or 'no reason was given'}".replace(secret, "***")
                raise SluiceError(
                    f"{of.token_url} gives no token to the client {of.client!r} ({said:.200}); correct login, password and "
                    f"scope of the connection {of.connection}"
                ) from None
            except httpx.HTTPStatusError as error:
                raise SluiceError(
                    f"{of.token_url} answers {error.response.status_code} instead of a token; check the token_url of the "
                    f"connection {of.connection}, and its login and password"
                ) from None
            except httpx.HTTPError as error:
                raise SluiceError(
                    self._fault(error)
                    or f"{of.token_url} does not answer ({type(error).__name__}: {error!s:.200}); check the token_url of the "
                    f"connection {of.connection}"
                ) from None
            except (ValueError, TypeError):
                raise self._no_token() from None
        if not isinstance(token, Mapping) or not token.get("access_token"):
            raise self._no_token()
        return token

    def _no_token(self) -> SluiceError:
        return SluiceError(
            f"{self._of.token_url} does not answer as a token endpoint does; check the token_url of the connection "
            f"{self._of.connection}"
        )
