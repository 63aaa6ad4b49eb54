"""Random numbers of the searches, the same on every machine."""

from models.compiled import compiled
from models.placement.kernels.problem import Ints


@compiled
def draw(state: Ints, below: int) -> int:
    """A whole number from 0 to below - 1 (Lehmer's generator; the state, an array of one, lies in 1..2^31 - 2)."""
    state[0] = state[0] * 48271 % 2147483647
    return int(state[0] % below)
