"""Tables to check, and the outcome of checking them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import pandas as pd

if TYPE_CHECKING:
    from great_expectations.expectations.expectation import Expectation

EXAMPLES: Final = 5
"""Most rows that a message shows per broken rule."""


@dataclass(frozen=True)
class CheckedTable:
    """A table, with its name in reports and the rules that it must satisfy."""

    name: str
    frame: pd.DataFrame
    rules: Sequence["Expectation"]


@dataclass(frozen=True)
class Violation:
    """A broken rule."""

    table: str
    expectation: str
    """Great Expectations' name for it."""
    rule: str
    """What must hold, in words."""
    columns: tuple[str, ...]
    """Columns that the rule is about."""
    found: str
    """The actual state, if the rule is about the table as a whole; otherwise empty."""
    count: int
    """Rows that break the rule; 0 if it is about the table as a whole."""
    rows: tuple[int, ...]
    """Their positions, ascending."""


@dataclass(frozen=True)
class CheckOutcome:
    evaluated: int
    violations: tuple[Violation, ...]
    pages: Mapping[str, bytes]
    """Data Docs: relative path -> HTML that needs no network; the first page is `index.html`."""
