"""The dataflow as arrays, and the records over each edge per record that its upstream operator reads."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from models.scaling.rates import Rates


@dataclass(frozen=True)
class Topology:
    """Operators have numbers: their places in `names`. Edges are sorted by their upstream operator's."""

    names: tuple[str, ...]
    """In topological order."""
    upstream: np.ndarray
    """int64[edges]."""
    downstream: np.ndarray
    """int64[edges]."""
    shares: np.ndarray
    """Records over each edge per record that its upstream operator sends, where that is stated; float64[edges]."""

    @classmethod
    def of(cls, rates: Rates) -> "Topology":
        number = {name: i for i, name in enumerate(rates.order)}
        edges = sorted((number[a], number[b], rates.share(a, b)) for a, b in rates.edges)
        upstream, downstream, shares = zip(*edges, strict=True)
        return cls(rates.order, np.array(upstream), np.array(downstream), np.array(shares))

    @cached_property
    def sources(self) -> list[int]:
        """Numbers of the operators without an incoming edge."""
        return [i for i, inputs in enumerate(self._inputs) if not inputs]

    @cached_property
    def _inputs(self) -> np.ndarray:
        return np.bincount(self.downstream, minlength=len(self.names))

    @cached_property
    def _outputs(self) -> np.ndarray:
        return np.bincount(self.upstream, minlength=len(self.names))

    def edge_ratios(self, records_in: np.ndarray, records_out: np.ndarray) -> np.ndarray:
        """Records over each edge per record that its upstream operator reads, float64[edges]; 0 where it reads none.

        Edges have no counters of their own. An operator with one input edge reads everything over it. Of several input
        edges, one gets the records left after the others, if those are the only inputs of their kind; otherwise, all
        records that the upstream operator sends.

        Args:
            records_in: records/s, float64[operators].
            records_out: records/s, float64[operators].
        """
        a, b = self.upstream, self.downstream
        shared = self._outputs > 1
        others_shared = np.bincount(b, weights=shared[a], minlength=len(self.names))[b] - shared[a]
        from_others = np.bincount(b, weights=records_out[a], minlength=len(self.names))[b] - records_out[a]
        over = np.where(others_shared == 0, records_in[b] - from_others, records_out[a])
        over = np.where(self._inputs[b] == 1, records_in[b], over)
        ratios = np.zeros(len(a))
        np.divide(np.maximum(over, 0.0), records_in[a], out=ratios, where=records_in[a] > 0)
        return ratios

    def propagate(self, at_sources: np.ndarray, ratios: np.ndarray) -> np.ndarray:
        """Rates of all operators, from those of the sources and the ratio of each edge, float64[operators]."""
        rates = at_sources.tolist()
        for a, b, ratio in zip(self.upstream.tolist(), self.downstream.tolist(), ratios.tolist(), strict=True):
            rates[b] += rates[a] * ratio
        return np.array(rates)
