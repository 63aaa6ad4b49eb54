"""Prices: US dollars per hour, exact to the millionth, and never NaN; an unknown price is None."""

from decimal import Decimal
from typing import Annotated, Final, Literal

from pydantic import Field, PlainSerializer, WithJsonSchema

Currency = Literal["USD"]

MOST_USD_PER_HOUR: Final = 10_000
"""Of one worker. 100,000 workers then cost at most 1e9 USD/h: with six decimals 15 digits, which survive a JSON number."""
_MOST_IN_ALL: Final = 100_000 * MOST_USD_PER_HOUR


def _usd(most: int) -> tuple[object, ...]:
    return (
        Field(ge=0, le=most, decimal_places=6, allow_inf_nan=False),
        PlainSerializer(float, return_type=float, when_used="json"),
        WithJsonSchema({"type": "number", "minimum": 0, "maximum": most}),
    )


UsdPerHour = Annotated[Decimal, *_usd(MOST_USD_PER_HOUR)]
"""Price of one worker."""
UsdPerHourInAll = Annotated[Decimal, *_usd(_MOST_IN_ALL)]
"""Price of all workers of a plan."""


def in_words(price: Decimal) -> str:
    """With cents, and the further digits that it has."""
    text = f"{price:,.6f}"
    return text[:-4] + text[-4:].rstrip("0")
