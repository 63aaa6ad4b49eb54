"""What a server is shown to be let in. Secrets are in no `repr`."""

import os
from dataclasses import dataclass

from pydantic import SecretStr

from models.errors import InvalidInput, SluiceError


class TokenMissing(SluiceError):
    """The environment variable for the token is not set."""


@dataclass(frozen=True)
class NoCredentials:
    """Requests carry none."""

    @property
    def account(self) -> str:
        return "a request without credentials"

    @property
    def refused(self) -> str:
        """What to do where these are not accepted."""
        return (
            "name a connection with credentials (connection:NAME), or an environment variable that holds a bearer token "
            "(--token-variable)"
        )

    @property
    def secrets(self) -> tuple[str, ...]:
        return ()


@dataclass(frozen=True)
class TokenInVariable:
    """A bearer token (RFC 6750) in an environment variable."""

    variable: str

    def token(self) -> str:
        """
        Raises:
            TokenMissing: the variable is not set, or empty.
            InvalidInput: it holds something else.
        """
        token = os.environ.get(self.variable)
        if not token:
            raise TokenMissing(
                f"the environment variable {self.variable} must hold a token, but is not set; set it where this runs"
            )
        return _checked(token, f"the environment variable {self.variable}")

    @property
    def account(self) -> str:
        return f"the token in {self.variable}"

    @property
    def refused(self) -> str:
        return f"the token in {self.variable} is not accepted there; check that it is right and still valid"

    @property
    def secrets(self) -> tuple[str, ...]:
        return (os.environ.get(self.variable, ""),)


@dataclass(frozen=True)
class BearerToken:
    """A bearer token of a connection."""

    connection: str
    value: SecretStr

    def token(self) -> str:
        """Raises InvalidInput: it is no token."""
        return _checked(self.value.get_secret_value(), f"the password of the connection {self.connection}")

    @property
    def account(self) -> str:
        return f"the token of the connection {self.connection}"

    @property
    def refused(self) -> str:
        return f"the token of the connection {self.connection} is not accepted there; put a valid one into its password field"

    @property
    def secrets(self) -> tuple[str, ...]:
        return (self.value.get_secret_value(),)


@dataclass(frozen=True)
class UserPassword:
    """A user and a password (RFC 7617)."""

    origin: str
    """The connection or the address that they come from, for messages."""
    user: str
    password: SecretStr

    @property
    def account(self) -> str:
        return f"the user {self.user!r} of {self.origin}"

    @property
    def refused(self) -> str:
        return (
            f"the user {self.user!r} with the password of {self.origin} is not accepted there; correct "
            f"its login and password"
        )

    @property
    def secrets(self) -> tuple[str, ...]:
        return (self.password.get_secret_value(),)


@dataclass(frozen=True)
class ClientCredentials:
    """An OAuth 2 client, which gets its tokens from an authorization server (RFC 6749, section 4.4)."""

    connection: str
    token_url: str
    client: str
    secret: SecretStr
    scope: str = ""

    @property
    def account(self) -> str:
        return f"the OAuth client {self.client!r} of the connection {self.connection}"

    @property
    def refused(self) -> str:
        return (
            f"a new token of {self.token_url} for the client {self.client!r} is not accepted there; check the scope of the "
            f"connection {self.connection}, and that the server trusts that issuer"
        )

    @property
    def secrets(self) -> tuple[str, ...]:
        return (self.secret.get_secret_value(),)


Credentials = NoCredentials | TokenInVariable | BearerToken | UserPassword | ClientCredentials


def _checked(token: str, place: str) -> str:
    """The HTTP library quotes header values that it cannot send, so that they must not reach it."""
    if not (token := token.strip()) or not all("!" <= char <= "~" for char in token):
        raise InvalidInput(f"{place} must hold a bearer token, which is ASCII without spaces, but holds something else")
    return token
