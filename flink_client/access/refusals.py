"""Answers of a server that lets a request not through, in words."""

from http import HTTPStatus

import httpx

from flink_client.access.server import ServerAccess


def refusal(answer: httpx.Response, access: ServerAccess, said: str) -> str | None:
    """Why what stands before a server, or the server itself, does not let a request through, and what to do; None: it did.

    Args:
        said: what the answer says; secrets that it quotes are left out.
    """
    if answer.is_redirect:
        return (
            f"{access.shown} answers {answer.status_code}, a redirect to {answer.headers.get('Location', '')!r:.200}; give "
            "the address that answers itself, and a token if that is a page to log in"
        )
    reason = without_secrets(answer, access, said) or "no reason was given"
    if answer.status_code == HTTPStatus.UNAUTHORIZED:
        fix = access.credentials.refused
        if "expired" in answer.headers.get("WWW-Authenticate", ""):
            fix = f"{access.credentials.account} has expired; get a new one"
        return f"{access.shown} refuses access ({answer.status_code}: {reason}); {fix}"
    if answer.status_code == HTTPStatus.FORBIDDEN:
        return (
            f"{access.shown} refuses access to {answer.request.method} {answer.request.url.path} ({answer.status_code}: "
            f"{reason}); {access.credentials.account} has no right to this: grant it there, or use other credentials"
        )
    return None


def without_secrets(answer: httpx.Response, access: ServerAccess, text: str) -> str:
    """The text without the secrets that the request carried."""
    sent = answer.request.headers.get("Authorization", "").rpartition(" ")[2]
    return access.hidden(text.replace(sent, "***") if sent else text)
