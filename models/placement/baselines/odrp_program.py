"""The mixed-integer program of ODRP, and its solution by HiGHS; see `odrp` for the formulation and its notation."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from scipy.optimize import OptimizeResult

from models.cluster import Cluster
from models.placement.baselines.odrp_instance import Stream
from models.placement.baselines.odrp_objectives import Scales
from models.placement.kernels.problem import Ints

Terms = Iterable[tuple[int, float]]
"""(variable, coefficient) pairs of a linear expression."""
State = tuple[int, int]
"""(k, c): an operator has k tasks, c of them on the worker in question."""


@dataclass
class MixedIntegerProgram:
    """Variables and constraints, as they are added."""

    cost: list[float] = field(default_factory=list)
    upper: list[float] = field(default_factory=list)
    integer: list[int] = field(default_factory=list)
    _rows: list[int] = field(default_factory=list)
    _columns: list[int] = field(default_factory=list)
    _values: list[float] = field(default_factory=list)
    _low: list[float] = field(default_factory=list)
    _high: list[float] = field(default_factory=list)

    def variable(self, *, upper: float = 1.0, integer: bool = False) -> int:
        """A new variable from 0 to `upper`."""
        self.cost.append(0.0)
        self.upper.append(upper)
        self.integer.append(int(integer))
        return len(self.cost) - 1

    def constrain(self, terms: Terms, low: float, high: float) -> None:
        """low <= terms <= high."""
        row = len(self._low)
        for variable, coefficient in terms:
            self._rows.append(row)
            self._columns.append(variable)
            self._values.append(coefficient)
        self._low.append(low)
        self._high.append(high)

    def minimise(self, terms: Terms, factor: float) -> None:
        """Add `factor` x `terms` to the objective."""
        for variable, coefficient in terms:
            self.cost[variable] += factor * coefficient

    @property
    def size(self) -> tuple[int, int]:
        """Variables and constraints."""
        return len(self.cost), len(self._low)

    def solve(self, time_limit_s: float | None, gap: float) -> "OptimizeResult":
        """HiGHS's answer, as scipy gives it."""
        from scipy.optimize import Bounds, LinearConstraint, milp  # slow to import
        from scipy.sparse import csr_matrix

        matrix = csr_matrix((self._values, (self._rows, self._columns)), shape=(len(self._low), len(self.cost)))
        options: dict[str, float] = {"mip_rel_gap": gap}
        if time_limit_s is not None:
            options["time_limit"] = time_limit_s
        return milp(
            np.array(self.cost),
            integrality=np.array(self.integer),
            bounds=Bounds(np.zeros(len(self.cost)), np.array(self.upper)),
            constraints=LinearConstraint(matrix, np.array(self._low), np.array(self._high)),
            options=options,
        )


class OdrpProgram:
    """Eq. 1-8 of `odrp` over the choices of parallelism and the workers of a cluster."""

    def __init__(
        self,
        choices: Sequence[Sequence[int]],
        work: Sequence[float],
        memory_mb: Sequence[float],
        streams: Sequence[Stream],
        order: Sequence[int],
        cluster: Cluster,
    ) -> None:
        """Args:
        choices: K_i, the numbers of tasks that operator i may have.
        work: e_i lambda_i, cores; order: operators so that every stream points forward.
        """
        self.program = MixedIntegerProgram()
        self._work, self._streams, self._workers = work, streams, cluster.workers
        self._n, self._order = len(choices), order
        self.tasks = [{k: self.program.variable(integer=True) for k in own} for own in choices]
        self.states = [[self._state_variables(own, w.slots) for w in cluster.workers] for own in choices]
        self._tie()
        self._limit(memory_mb)

    def _state_variables(self, choices: Sequence[int], slots: int) -> dict[State, int]:
        return {(k, c): self.program.variable(integer=True) for k in choices for c in range(min(k, slots) + 1)}

    def _tie(self) -> None:
        """Eq. 1-3: one parallelism, one state on each worker that agrees with it, and every task placed once."""
        for tasks, on_workers in zip(self.tasks, self.states, strict=True):
            self.program.constrain([(z, 1.0) for z in tasks.values()], 1.0, 1.0)
            for k, z in tasks.items():
                for states in on_workers:
                    own = [(a, 1.0) for (other, _), a in states.items() if other == k]
                    self.program.constrain([*own, (z, -1.0)], 0.0, 0.0)
                placed = [
                    (a, float(c)) for states in on_workers for (other, c), a in states.items() if other == k and c
                ]
                self.program.constrain([*placed, (z, -float(k))], 0.0, 0.0)

    def _limit(self, memory_mb: Sequence[float]) -> None:
        """Eq. 4: slots, and memory where a worker states it."""
        for w, worker in enumerate(self._workers):
            self.program.constrain([t for i in range(self._n) for t in self.count(i, w)], 0.0, worker.slots)
            if worker.memory_mb is not None:
                needed = [(a, c * memory_mb[i]) for i in range(self._n) for a, c in self.count(i, w)]
                self.program.constrain(needed, 0.0, worker.memory_mb)

    def break_symmetry(self, log_availability: Mapping[str, float]) -> None:
        """Neighbouring workers that are alike are ordered by their number of tasks: the plans are the same."""
        for w in range(len(self._workers) - 1):
            one, other = self._workers[w], self._workers[w + 1]
            as_available = log_availability.get(one.name, 0.0) == log_availability.get(other.name, 0.0)
            if as_available and one.model_copy(update={"name": other.name}) == other:
                fewer = [(a, -c) for i in range(self._n) for a, c in self.count(i, w + 1)]
                self.program.constrain([t for i in range(self._n) for t in self.count(i, w)] + fewer, 0.0, np.inf)

    def count(self, i: int, w: int) -> list[tuple[int, float]]:
        """x_wi, tasks of operator i on worker w."""
        return [(a, float(c)) for (_, c), a in self.states[i][w].items() if c]

    def share(self, i: int, w: int) -> list[tuple[int, float]]:
        """x_wi / p_i."""
        return [(a, c / k) for (k, c), a in self.states[i][w].items() if c]

    def used(self, i: int, w: int) -> list[tuple[int, float]]:
        """1 where operator i has a task on worker w."""
        return [(a, 1.0) for (_, c), a in self.states[i][w].items() if c]

    def weigh_response(self, weight: float, scales: Scales, link_latency_s: float) -> None:
        """Eq. 5: the longest path from the source to a sink, beyond R_min and in units of R_max - R_min.

        The solver drops coefficients near 0 and stops at a relative gap, so neither the unit nor R_min, which may be far
        larger than what the plans differ by, may enter.
        """
        span = scales.response_span
        if weight * span <= 0:
            return
        least, most = (end / span for end in scales.response)
        done = [self.program.variable(upper=most) for _ in range(self._n)]
        excess = self.program.variable(upper=most - least)
        into: dict[int, list[Stream]] = {i: [] for i in range(self._n)}
        for stream in self._streams:
            into[stream.downstream].append(stream)
        for j in self._order:
            here = [(z, -self._work[j] / span / k) for k, z in self.tasks[j].items()]
            self.program.constrain([(excess, 1.0), (done[j], -1.0)], -least, np.inf)
            self.program.constrain([(done[j], 1.0), *here], 0.0, np.inf)
            for stream in into[j]:
                delay = [(self._apart(stream), -link_latency_s / span)] if link_latency_s > 0 else []
                self.program.constrain([(done[j], 1.0), (done[stream.upstream], -1.0), *here, *delay], 0.0, np.inf)
        self.program.minimise([(excess, 1.0)], weight)

    def _apart(self, stream: Stream) -> int:
        """b_ij of Eq. 5: 1 as soon as a task of i and one of j are on different workers."""
        apart = self.program.variable()
        for w in range(len(self._workers)):
            for v in range(len(self._workers)):
                if w != v:
                    both = self.used(stream.upstream, w) + self.used(stream.downstream, v)
                    self.program.constrain([(apart, 1.0), *((a, -1.0) for a, _ in both)], -1.0, np.inf)
        return apart

    def weigh_cost(self, weight: float, span: float) -> None:
        """Eq. 6: slots in use, beyond the fewest."""
        if weight * span > 0:
            extra = [(z, float(k - min(tasks))) for tasks in self.tasks for k, z in tasks.items()]
            self.program.minimise(extra, weight / span)

    def weigh_traffic(self, weight: float, everything: float) -> None:
        """Eq. 7: what crosses workers, as a share of everything sent, and the bandwidth of each worker's link where it
        states one."""
        limited = [w for w, worker in enumerate(self._workers) if worker.net is not None]
        for w in range(len(self._workers)):
            leaving: list[tuple[int, float]] = []
            for stream in self._streams:
                if everything > 0 and (weight > 0 or w in limited):
                    share = stream.bytes_per_s / everything
                    leaving += [(h, -share * c) for h, c in self._kept(stream, w)]
                    leaving += [(a, share * c) for a, c in self.share(stream.upstream, w)]
            if w in limited and leaving:
                self.program.constrain(leaving, -np.inf, (self._workers[w].net or np.inf) / everything)
            self.program.minimise(leaving, weight)

    def _kept(self, stream: Stream, w: int) -> list[tuple[int, float]]:
        """f_wi f_wj of Eq. 7, exact: only the term of the state that i is in is not 0."""
        terms = []
        states = self.states[stream.upstream][w]
        for (k, c), a in states.items():
            if c:
                h = self.program.variable()
                self.program.constrain([(h, 1.0), (a, -1.0)], -np.inf, 0.0)
                terms.append((h, c / k))
        spread = [(h, 1.0) for h, _ in terms]
        self.program.constrain(spread + [(a, -s) for a, s in self.share(stream.downstream, w)], -np.inf, 0.0)
        return terms

    def weigh_availability(self, weight: float, most: float, log_availability: Mapping[str, float]) -> None:
        """Eq. 8: every worker in use must be up."""
        for w, worker in enumerate(self._workers):
            loss = -log_availability.get(worker.name, 0.0)
            if weight * loss <= 0:
                continue
            active = self.program.variable()
            for i in range(self._n):
                self.program.constrain([(active, 1.0), *((a, -1.0) for a, _ in self.used(i, w))], 0.0, np.inf)
            self.program.minimise([(active, loss / most)], weight)

    def counts(self, x: npt.NDArray[np.float64]) -> Ints:
        """The plan of a solution, (W, n)."""
        return np.array(
            [
                [sum(c for (_, c), a in self.states[i][w].items() if x[a] > 0.5) for i in range(self._n)]
                for w in range(len(self._workers))
            ],
            dtype=np.int64,
        )
