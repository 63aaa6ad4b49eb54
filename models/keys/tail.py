"""How fast the frequencies of keys fall: the exponent of Zipf's law, from a sample of keys with their exact counts.

Notation: the key of rank r among K is expected λ (r/K)^-s times (s the exponent, λ the rarest key's records). A key drawn
from all has u = r/K evenly spread on (0, 1], and comes Poisson-often:
    P(c) = ∫ Poisson(c; λ u^-s) du = a λ^a Γ(c - a, λ) / c!,  a = 1/s, Γ the upper incomplete gamma function.
The likelihood is conditional on 1 <= c <= c_max: rarer keys cannot be in the sample, and heavier ones are not the tail.
s = 0 is an even distribution.
"""

from typing import Any, Final

import numpy as np

from models.plan.parts import Interval

FEWEST_KEYS: Final = 50
PROBABILITY: Final = 0.95
_HALF_CHI_SQUARE: Final = 1.920729410347062
"""By so much the log-likelihood is lower at the ends of the interval (95 %, one parameter)."""
_SMALLEST, _LARGEST = 0.005, 5.0
"""Of the exponent: a smaller one is called 0, and a larger one leaves no tail."""
_RAREST: Final = 1e-4
"""Of λ: where most keys of the tail never come, it does not matter how rare they are."""
_EXACT: Final = 3e-4
"""To this the logarithms of s and λ are found."""
_DEPTH, _PANELS, _NODES = 45.0, 60, 10
"""-ln u is integrated up to this, in so many panels of so many nodes (Gauss-Legendre)."""


def zipf_exponent(counts: np.ndarray, most: int) -> Interval | None:
    """Exponent of Zipf's law by maximum likelihood, with the interval of its profile likelihood.

    Args:
        counts: records of each sampled key of the tail, 1 to `most`.
        most: a key with more records is not of the tail.

    Returns:
        None where there are fewer than FEWEST_KEYS keys, or the likelihood has no maximum below _LARGEST.
    """
    from scipy.optimize import brentq, minimize_scalar  # slow to import

    if len(counts) < FEWEST_KEYS:
        return None
    values, times = np.unique(counts, return_counts=True)
    loss = _Loss(values.astype(np.float64), times.astype(np.float64), float(most))
    rarest = (np.log(_RAREST), np.log(most))
    options = {"method": "bounded", "options": {"xatol": _EXACT}}

    def profile(log_exponent: float) -> float:
        return float(minimize_scalar(lambda at: loss(log_exponent, at), bounds=rarest, **options).fun)

    def worse(log_exponent: float) -> float:
        return profile(log_exponent) - best - _HALF_CHI_SQUARE

    first, last = np.log(_SMALLEST), np.log(_LARGEST)
    peak = float(minimize_scalar(profile, bounds=(first, last), **options).x)
    best = profile(peak)
    if worse(last) < 0:
        return None
    low = 0.0 if worse(first) < 0 else float(np.exp(brentq(worse, first, peak, xtol=_EXACT)))
    high = float(np.exp(brentq(worse, peak, last, xtol=_EXACT)))
    value = 0.0 if low == 0.0 and profile(first) <= best else float(np.exp(peak))
    return Interval(value=value, low=low, high=high, probability=PROBABILITY)


class _Loss:
    """Negative log-likelihood of (ln s, ln λ)."""

    def __init__(self, values: np.ndarray, times: np.ndarray, most: float) -> None:
        from scipy.special import gammaln

        self._values, self._times, self._most, self._log_factorials = values, times, most, gammaln(values + 1)
        nodes, weights = np.polynomial.legendre.leggauss(_NODES)
        half = _DEPTH / _PANELS / 2
        self._v = ((2 * np.arange(_PANELS)[:, None] + 1 + nodes) * half).ravel()
        self._log_weights = np.log(np.tile(weights, _PANELS) * half) - self._v

    def __call__(self, log_exponent: float, log_rarest: float) -> float:
        with np.errstate(over="ignore"):
            inside, log_p = self._inside(log_exponent, log_rarest), self._log_p(log_exponent, log_rarest)
        return float(self._times.sum() * np.log(inside) - self._times @ log_p)

    def _log_p(self, log_exponent: float, log_rarest: float) -> np.ndarray:
        """ln P(c) of each value: in closed form where c is above 1/s, else by quadrature, which then is smooth."""
        a, c = float(np.exp(-log_exponent)), self._values
        made, closed = np.empty_like(c), c > a + 0.5
        many, few = c[closed], c[~closed, None]
        made[closed] = np.log(a) + a * log_rarest + _log_upper_gamma(many, a, log_rarest) - np.log(many)
        if len(few):
            log_x = log_rarest + np.exp(log_exponent) * self._v
            log_terms = self._log_weights + few * log_x - np.exp(log_x) - self._log_factorials[~closed, None]
            top = log_terms.max(axis=1)
            made[~closed] = top + np.log(np.exp(log_terms - top[:, None]).sum(axis=1))
        return made

    def _inside(self, log_exponent: float, log_rarest: float) -> float:
        """P(1 <= c <= c_max)."""
        from scipy.special import gammainc

        x = np.exp(log_rarest + np.exp(log_exponent) * self._v)
        none = float(np.exp(self._log_weights) @ np.exp(-x))
        a, next_ = float(np.exp(-log_exponent)), self._most + 1
        if next_ > a + 0.5:  # by parts: u at which x is reached, weighted by the density of x
            more = gammainc(next_, np.exp(log_rarest)) + np.exp(a * log_rarest + _log_upper_gamma(next_, a, log_rarest))
        else:
            more = float(np.exp(self._log_weights) @ gammainc(next_, x))
        return max(1.0 - none - float(more), 1e-300)


def _log_upper_gamma(c: Any, a: float, log_rarest: float) -> Any:
    """ln of Γ(c - a, λ) / Γ(c), where c > a."""
    from scipy.special import gammaincc, gammaln

    upper = gammaincc(c - a, np.exp(log_rarest))
    return gammaln(c - a) - gammaln(c) + np.log(np.maximum(upper, 1e-300))
