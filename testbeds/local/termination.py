"""SIGTERM closes what is open, as Ctrl-C does."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

EXIT_TERMINATED: Final = 128 + signal.SIGTERM
"""As a shell reports it."""


@contextmanager
def closing_on_sigterm() -> Iterator[None]:
    """Within it, SIGTERM raises SystemExit in the main thread, so that `with` blocks close; only there may it be used."""

    def stop(*_: object) -> None:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)  # a second one must not cut the closing off
        raise SystemExit(EXIT_TERMINATED)

    before = signal.signal(signal.SIGTERM, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
