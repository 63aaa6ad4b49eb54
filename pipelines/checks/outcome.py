"""What is checked, and what came of it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import pandas as pd

if TYPE_CHECKING:
    from great_expectations.expectations.expectation import Expectation
    from pyspark.sql import DataFrame

EXAMPLES: Final = 5
"""Most rows that a message shows of those that break a rule."""


@dataclass(frozen=True)
class Subject:
    """A table, under the name it has in reports, and the rules it must keep."""

    name: str
    frame: "pd.DataFrame | DataFrame"
    rules: Sequence["Expectation"]


@dataclass(frozen=True)
class Violation:
    """A rule that was not kept."""

    table: str
    expectation: str
    """Great Expectations' name for it."""
    rule: str
    """What must hold, in words."""
    columns: tuple[str, ...]
    """Columns it speaks of."""
    found: str
    """What was found instead, where the rule is about the table as a whole; otherwise empty."""
    count: int
    """Rows that break the rule; 0 where it is about the table as a whole."""
    rows: tuple[int, ...]
    """Their positions in a pandas frame, ascending; empty for Spark."""


@dataclass(frozen=True)
class Outcome:
    evaluated: int
    violations: tuple[Violation, ...]
    pages: Mapping[str, bytes]
    """Data Docs: relative path -> HTML that needs no network; the first page is `index.html`."""
