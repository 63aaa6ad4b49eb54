"""The style of all tables, which fits terminals of 80 columns."""

from collections.abc import Collection

from rich import box
from rich.table import Table


def table(*columns: str, text: Collection[str] = (), wrap: Collection[str] = ()) -> Table:
    """A table whose first column and columns of text are left-aligned, and numbers right-aligned.

    Args:
        text: further columns of text.
        wrap: columns of text that may continue on the next line; others are never broken.
    """
    made = Table(header_style="bold", box=box.SIMPLE_HEAD, show_edge=False, padding=(0, 1, 0, 0), pad_edge=False)
    for number, name in enumerate(columns):
        made.add_column(
            name,
            justify="left" if number == 0 or name in {*text, *wrap} else "right",
            overflow="fold",
            no_wrap=name not in wrap,
        )
    return made
