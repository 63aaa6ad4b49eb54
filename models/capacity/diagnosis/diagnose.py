"""BoundFacts in, diagnosis out."""

from typing import Final

from models.capacity.diagnosis.bound_by import BoundBy
from models.capacity.diagnosis.facts import BoundFacts
from models.capacity.diagnosis.finding import find
from models.capacity.diagnosis.rates import Predictor, effect, saturating_rate
from models.capacity.diagnosis.remedies import remedy
from models.capacity.diagnosis.wording import sentence

_KEPT: Final = ("hot key", "state reads", "network", "waiting")
"""Causes that a larger configuration has, too, if nothing else explains its limit; others belong to one number of tasks."""
_UNKNOWN: Final = "the cause is unknown"
_NO_RATE: Final = "the busyness of an operator is unknown"


def diagnose(facts: BoundFacts, seen: BoundBy | None = None, predict: Predictor = saturating_rate) -> BoundBy:
    """What bounds a job with these facts, and what would lift it.

    Args:
        seen: what bound the largest measured configuration: the diagnosis where the facts of a plan show no cause.
        predict: the rate at which a job saturates, by which the effect of the remedy is computed.
    """
    finding = find(facts)
    words = sentence(facts, finding)
    if finding.cause == "unknown" and seen is not None and seen.cause in _KEPT:
        return _as_seen(seen, words)
    lifted = remedy(facts, finding)
    if lifted is None:
        return BoundBy(vertex=None, cause="unknown", sentence=words, remedy=None, no_effect_because=_UNKNOWN)
    brings = None
    if lifted.after is not None:
        brings = effect(facts, lifted.after, lifted.change, predict, waiting_stays=lifted.waiting_stays)
    return BoundBy(
        vertex=finding.vertex,
        cause=finding.cause,
        also=finding.also,
        sentence=words,
        remedy=lifted.words,
        effect=brings,
        no_effect_because=None if brings else (lifted.change if lifted.after is None else _NO_RATE),
    )


def _as_seen(seen: BoundBy, words: str) -> BoundBy:
    """The diagnosis of the largest measured configuration, for a plan that is larger."""
    return seen.model_copy(
        update={
            "sentence": f"as in the largest configuration measured: {seen.sentence} ({words})",
            "effect": None,
            "no_effect_because": "the figures belong to the measured configuration",
        }
    )
