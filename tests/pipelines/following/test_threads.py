"""Blocking calls beside an event loop."""

import asyncio

import pytest

from pipelines.following.threads import in_thread


def test_what_fails_in_a_thread_fails_where_it_is_waited_for() -> None:
    def fail() -> None:
        raise LookupError("no")

    with pytest.raises(LookupError, match="no"):
        asyncio.run(in_thread(fail, "a test"))
    assert asyncio.run(in_thread(lambda: 3, "a test")) == 3
