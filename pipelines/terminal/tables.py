"""The style of all tables, which fits terminals of 80 columns. In narrower ones lines run on, and no digit is lost."""

from collections.abc import Collection
from typing import Any, Final

from rich import box
from rich.console import Console, ConsoleOptions, RenderResult
from rich.table import Table

_LEAST_WRAPPED: Final = 12
"""Characters of a line in a column that continues on the next one."""
_BETWEEN: Final = 2
"""Characters between two columns."""
_ANY_WIDTH: Final = 10_000


class UncroppedConsole(Console):
    """A console that cuts nothing at its right edge."""

    def print(self, *objects: Any, **options: Any) -> None:
        super().print(*objects, **{"crop": False, **options})


class _Table(Table):
    """A table that would rather be wider than the terminal than cut a cell."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        any_width = options.update(max_width=_ANY_WIDTH)
        least = 0
        for column in self.columns:
            cells = [console.measure(cell, options=any_width).maximum for cell in (column.header, *column.cells)]
            column.min_width = max(cells) if column.no_wrap else min(max(cells), _LEAST_WRAPPED)
            least += column.min_width + _BETWEEN
        yield from super().__rich_console__(console, options.update(max_width=max(least, options.max_width)))


def table(*columns: str, text: Collection[str] = (), wrap: Collection[str] = ()) -> Table:
    """A table whose first column and columns of text are left-aligned, and numbers right-aligned.

    Args:
        text: further columns of text.
        wrap: columns of text that may continue on the next line; others are never broken.
    """
    made = _Table(header_style="bold", box=box.SIMPLE_HEAD, show_edge=False, padding=(0, 1, 0, 0), pad_edge=False)
    for number, name in enumerate(columns):
        made.add_column(
            name,
            justify="left" if number == 0 or name in {*text, *wrap} else "right",
            overflow="fold",
            no_wrap=name not in wrap,
        )
    return made
