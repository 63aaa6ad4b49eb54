"""Objectives as people write them: `lag p99 < 30 s, recover 15 min outage in 20 min, at most 12 $/h`.

objectives  = objective *("," objective)                  in any order, of each kind at most one
lag         = "lag" "p"NUMBER ("<" | "<=") DURATION
recovery    = "recover" DURATION "outage" "in" DURATION ["with" DURATION "restart"]
price       = "at most" NUMBER ("$" | "USD") "/" "h"
DURATION    = NUMBER ("s" | "min" | "h")
"""

import re
from decimal import Decimal
from typing import Final

from pydantic import ValidationError

from models.errors import InvalidInput
from models.objectives.objectives import (
    LEAST_LAG_S,
    MOST_S,
    LagObjective,
    Objectives,
    PriceObjective,
    RecoveryObjective,
    seconds_in_words,
)
from models.resources.price import MOST_USD_PER_HOUR

EXAMPLE: Final = "lag p99 < 30 s, recover 15 min outage in 20 min, at most 12 $/h"
SECONDS: Final = {"s": 1.0, "min": 60.0, "h": 3600.0}
_NUMBER: Final = r"\d{1,12}(?:\.\d{1,6})?"
_DURATION: Final = rf"({_NUMBER})\s*([a-z]+)"
_LAG: Final = re.compile(rf"lag\s+p({_NUMBER})\s*<=?\s*{_DURATION}")
_RECOVERY: Final = re.compile(rf"recover\s+{_DURATION}\s+outage\s+in\s+{_DURATION}(?:\s+with\s+{_DURATION}\s+restart)?")
_PRICE: Final = re.compile(rf"at\s+most\s+({_NUMBER})\s*(?:\$|usd)\s*/\s*h")
_FORMS: Final = {
    "lag": "'lag p99 < 30 s'",
    "recover": "'recover 15 min outage in 20 min', or with '... with 45 s restart' at its end",
    "at": "'at most 12 $/h'",
}


def parse_objectives(text: str) -> Objectives:
    """The objectives of a text.

    Raises:
        InvalidInput: it is none; the message states what may be written, and what came.
    """
    found: dict[str, LagObjective | RecoveryObjective | PriceObjective] = {}
    for written in text.split(","):
        clause = " ".join(written.lower().split())
        kind, objective = _objective(clause, text)
        if kind in found:
            raise InvalidInput(f"one {kind} objective may be stated, but got two: {_shown(text)}; leave one out")
        found[kind] = objective
    return Objectives.model_validate(found)


def _objective(clause: str, text: str) -> tuple[str, LagObjective | RecoveryObjective | PriceObjective]:
    if match := _LAG.fullmatch(clause):
        return "lag", _lag(match)
    if match := _RECOVERY.fullmatch(clause):
        return "recovery", _recovery(match)
    if match := _PRICE.fullmatch(clause):
        return "price", _price(match)
    form = next((form for word, form in _FORMS.items() if clause.split(" ")[0] == word), None)
    if form is not None:
        raise InvalidInput(f"this objective must be written like {form}, but got {_shown(clause)}")
    what = f"got {_shown(clause)}" if clause else f"one of them is empty in {_shown(text)}"
    raise InvalidInput(f"objectives must be written like '{EXAMPLE}', each at most once, but {what}")


def _lag(match: re.Match[str]) -> LagObjective:
    percent, limit_s = float(match[1]), _seconds(match[2], match[3])
    if not 50 <= percent <= 99.99:
        raise InvalidInput(f"the percentile of a lag objective must be p50 to p99.99, but got p{match[1]}")
    if limit_s < LEAST_LAG_S:
        raise InvalidInput(
            f"a lag objective must allow {seconds_in_words(LEAST_LAG_S)} or more, which is how finely lag is predicted, but "
            f"got {seconds_in_words(limit_s)}"
        )
    return LagObjective(share=round(percent / 100, 6), limit_s=limit_s)


def _recovery(match: re.Match[str]) -> RecoveryObjective:
    restart_s = 0.0 if match[5] is None else _seconds(match[5], match[6], zero=True)
    outage_s, within_s = _seconds(match[1], match[2]), _seconds(match[3], match[4])
    try:
        return RecoveryObjective(outage_s=outage_s, within_s=within_s, restart_s=restart_s)
    except ValidationError as error:
        raise InvalidInput(str(error.errors()[0]["msg"]).removeprefix("Value error, ")) from error


def _price(match: re.Match[str]) -> PriceObjective:
    amount, most = Decimal(match[1]), 100_000 * MOST_USD_PER_HOUR
    if not 0 < amount <= most:
        raise InvalidInput(f"a price limit must be above 0 and at most {most:,} $/h, but got {match[1]}")
    return PriceObjective(usd_per_hour=amount)


def _seconds(number: str, unit: str, zero: bool = False) -> float:
    if unit not in SECONDS:
        raise InvalidInput(f"the unit of a duration must be s, min or h, but got {_shown(f'{number} {unit}')}")
    seconds = float(number) * SECONDS[unit]
    if seconds > MOST_S or (seconds == 0 and not zero):
        raise InvalidInput(
            f"a duration must be above 0 and at most {MOST_S / 3600:g} h, but got {_shown(f'{number} {unit}')}"
        )
    return seconds


def _shown(text: str) -> str:
    return repr(text if len(text) <= 80 else f"{text[:77]}...")
