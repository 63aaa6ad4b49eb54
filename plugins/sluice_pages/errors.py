"""Answers to requests that fail: a page or the login for browsers, JSON for programs."""

from collections.abc import Callable, Coroutine
from http import HTTPStatus
from typing import Any, Final

from fastapi import Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, RedirectResponse, Response
from starlette.exceptions import HTTPException

from models.errors import InvalidInput, SluiceError
from pipelines.store.workspace import Damaged, Missing
from sluice_pages.access import login_address
from sluice_pages.pages import page

_TITLES: Final = {401: "Not logged in", 403: "Not allowed", 404: "Not found", 405: "Not allowed"}


def _http_error(request: Request, error: HTTPException) -> Response:
    if error.status_code == HTTPStatus.UNAUTHORIZED and _wants_page(request):
        return RedirectResponse(login_address(request), status_code=HTTPStatus.SEE_OTHER)
    return _answer(request, error.status_code, str(error.detail))


def _wrong_parameters(request: Request, error: RequestValidationError) -> Response:
    # A version that is not a number is an unknown address.
    first = error.errors()[0]
    return _answer(request, HTTPStatus.NOT_FOUND, f"{first['loc'][-1]}: {first['msg']}")


def _unknown(request: Request, error: InvalidInput | Missing) -> Response:
    return _answer(request, HTTPStatus.NOT_FOUND, str(error))


def _unreadable(request: Request, error: SluiceError) -> Response:
    title = "Damaged" if isinstance(error, Damaged) else "Failed"
    return _answer(request, HTTPStatus.INTERNAL_SERVER_ERROR, str(error), title)


def _answer(request: Request, status: int, message: str, title: str | None = None) -> Response:
    if not _wants_page(request):
        return JSONResponse({"detail": message}, status)
    title = title or _TITLES.get(status, "Failed")
    return page(request, "error.html.j2", status, title=title, message=message, code=int(status))


def _wants_page(request: Request) -> bool:
    return "text/html" in request.headers.get("accept", "") and not request.url.path.endswith(".json")


Handler = Callable[[Request, Any], Coroutine[Any, Any, Response]]


def _asynchronous(answer: Callable[[Request, Any], Response]) -> Handler:
    async def handle(request: Request, error: Any) -> Response:
        return answer(request, error)

    return handle


HANDLERS: Final[dict[int | type[Exception], Handler]] = {
    HTTPException: _asynchronous(_http_error),
    RequestValidationError: _asynchronous(_wrong_parameters),
    InvalidInput: _asynchronous(_unknown),
    Missing: _asynchronous(_unknown),
    SluiceError: _asynchronous(_unreadable),
}
"""By class of error; the most specific one answers."""
