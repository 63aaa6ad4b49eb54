"""One colour for each policy, in every picture and every report."""

from collections.abc import Iterable
from typing import Final

from models.scaling.policies import POLICIES

INPUT: Final = "#0f172a"
"""The rate that comes in, which is no policy's."""
_PALETTE: Final = ("#2563eb", "#059669", "#d97706", "#ec4899", "#7c3aed", "#0891b2", "#dc2626", "#65a30d", "#92400e")
"""Further apart than the house's, since up to seven lines cross one another."""


def policy_colours(policies: Iterable[str]) -> dict[str, str]:
    """By the order in which policies are registered, so that the choice of an evaluation changes none."""
    known = list(POLICIES)
    return {name: _PALETTE[known.index(name) % len(_PALETTE)] for name in policies}
