"""How Airflow's components share one SQLite file.

Airflow sets write-ahead logging itself. Writers still wait for each other: the driver's default of five seconds is shorter
than the queue of writers on a busy machine, and a scheduler that exceeds it ends.
"""

import asyncio
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any, Final

BUSY_TIMEOUT_S: Final = 120.0
CONNECT_ARGS: Final[dict[str, Any]] = {"timeout": BUSY_TIMEOUT_S}
"""Referenced by `[database] sql_alchemy_connect_args`."""
CONNECT_ARGS_ASYNC: Final[dict[str, Any]] = {"timeout": BUSY_TIMEOUT_S}
"""Referenced by `[database] sql_alchemy_connect_args_async`."""

Message = MutableMapping[str, Any]
Application = Callable[
    [Message, Callable[[], Awaitable[Message]], Callable[[Message], Awaitable[None]]], Awaitable[None]
]


class OneWriteAtATime:
    """ASGI middleware of the API server: requests that may write take turns.

    Airflow commits the audit log of a request in the event loop. If a request in a thread holds SQLite's only write lock
    then, the loop waits for that lock, and the thread waits for the loop to commit: a deadlock as long as the busy timeout.
    """

    def __init__(self, app: Application) -> None:
        self._app, self._turn = app, asyncio.Lock()

    async def __call__(
        self, scope: Message, receive: Callable[[], Awaitable[Message]], send: Callable[[Message], Awaitable[None]]
    ) -> None:
        if scope["type"] != "http" or scope["method"] in ("GET", "HEAD", "OPTIONS"):
            await self._app(scope, receive, send)
            return
        async with self._turn:
            await self._app(scope, receive, send)
