"""Fields of the forms on the pages."""

from typing import Annotated, Final
from urllib.parse import parse_qs

from fastapi import Depends, HTTPException, Request

_MOST_FORM_BYTES: Final = 10_000
_LONGEST_FIELD: Final = 500


async def _fields(request: Request) -> dict[str, str]:
    """The first value of each field; refuses bodies that are longer than a form can be."""
    body = b""
    async for part in request.stream():
        body += part
        if len(body) > _MOST_FORM_BYTES:
            raise HTTPException(413, f"A form has at most {_MOST_FORM_BYTES} bytes.")
    given = parse_qs(body.decode(errors="replace"))
    return {name: values[0].strip()[:_LONGEST_FIELD] for name, values in given.items()}


FormDep = Annotated[dict[str, str], Depends(_fields)]
"""Field -> its text, stripped and cut."""


def version_in(form: dict[str, str], name: str) -> int:
    """A version of a plan in a form. Raises HTTPException."""
    given = form.get(name, "")
    if not (given.isascii() and given.isdecimal() and 0 < int(given) < 10**9):
        raise HTTPException(400, f"{name!r} must be a version of a plan, but got {given[:80]!r}. Nothing was changed.")
    return int(given)


def rate_in(form: dict[str, str], name: str) -> float:
    """A rate in a form, records/s. Raises HTTPException."""
    given = form.get(name, "")
    try:
        rate = float(given.replace(",", ""))
    except ValueError:
        rate = 0.0
    if not 0 < rate <= 1e15:
        raise HTTPException(400, f"{name!r} must be records/s above 0, but got {given[:80]!r}. Nothing was changed.")
    return rate
