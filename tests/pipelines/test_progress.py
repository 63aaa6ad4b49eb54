"""Progress on a terminal and where it is piped."""

import io

import pytest
from rich.console import Console

from pipelines.progress import TerminalProgress


@pytest.mark.parametrize(("items", "total", "lines"), [(range(40), None, 10), (iter(range(3)), 3, 3)])
def test_a_piped_loop_prints_a_line_now_and_then(items: range, total: int | None, lines: int) -> None:
    console = Console(file=io.StringIO(), width=80)
    count = total or len(items)
    assert list(TerminalProgress(console).track(items, "replaying", total)) == list(range(count))
    printed = console.file.getvalue().splitlines()
    assert len(printed) == lines
    assert printed[-1] == f"replaying: {count} of {count}"


def test_an_unknown_length_is_a_question_mark() -> None:
    console = Console(file=io.StringIO(), width=80)
    assert list(TerminalProgress(console).track(iter("ab"), "reading")) == ["a", "b"]
    assert console.file.getvalue().splitlines() == ["reading: 1 of ?", "reading: 2 of ?"]


def test_a_terminal_shows_a_bar() -> None:
    console = Console(file=io.StringIO(), width=80, force_terminal=True)
    assert list(TerminalProgress(console).track(range(40), "replaying")) == list(range(40))
    assert "40 of 40" not in console.file.getvalue() and "replaying" in console.file.getvalue()
