"""Blocking calls in threads, awaited without blocking the event loop."""

import asyncio
import logging
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Final, TypeVar

T = TypeVar("T")
_PATIENCE_S: Final = 60.0
"""Time after which the log warns that there is no answer yet, seconds."""
_logger = logging.getLogger(__name__)


async def in_thread(call: Callable[[], T], what: str) -> T:
    """Call `call` in a thread that does not keep the process alive if it hangs; return its result."""
    loop = asyncio.get_running_loop()
    done: asyncio.Future[T] = loop.create_future()

    def settle(set_it: Callable[[], None]) -> None:
        def unless_cancelled() -> None:
            if not done.done():
                set_it()

        with suppress(RuntimeError):  # the loop has ended meanwhile
            loop.call_soon_threadsafe(unless_cancelled)

    def work() -> None:
        try:
            result = call()
        except BaseException as error:
            failure = error
            settle(lambda: done.set_exception(failure))
        else:
            settle(lambda: done.set_result(result))

    threading.Thread(target=work, name=f"sluice: {what}", daemon=True).start()
    while not done.done():
        await asyncio.wait({done}, timeout=_PATIENCE_S)
        if not done.done():
            _logger.warning("%s: no answer for %g s; still waiting", what, _PATIENCE_S)
    return done.result()
