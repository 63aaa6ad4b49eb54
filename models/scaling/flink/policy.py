"""The policy `flink`: the decisions of the Flink Kubernetes operator's autoscaler.

It reads the metrics in every reconcile interval. Once the job has settled and the window is full, it scales if an operator
with a new parallelism lies outside its utilisation band; then all such operators are rescaled at once.

Rulings. A scaling enters the history when its rescale is reported, so that one which was not executed leaves no trace.
`vertex.exclude.ids` takes the names of operators.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from models.errors import InvalidInput
from models.scaling.decisions.change import changes_in_words
from models.scaling.flink.memory_tuning import MIB, Channels, MemoryUse, TunedMemory, tune
from models.scaling.flink.metrics import Evaluated, evaluate
from models.scaling.flink.scaling_history import (
    DelayedScaleDowns,
    PastScaling,
    RestartTimes,
    ScalingHistory,
    WantedTasks,
    is_ineffective,
    was_just_scaled_up,
)
from models.scaling.flink.settings import FlinkSettings
from models.scaling.flink.topology import Topology
from models.scaling.flink.vertex import Bounds, parallelism, scaling_factors
from models.scaling.flink.window import MetricWindow, Sample
from models.scaling.policy import Decision, Facts, Recommendation, Rescaled
from models.scaling.rates import Rates
from models.wording import amount, tasks


@dataclass(frozen=True)
class _Targets:
    """The target parallelism of each operator, and the figures behind it; rates in records/s."""

    names: Sequence[str]
    rated: Sequence[bool]
    """Whether the operator has the metrics needed for a decision."""
    current: Sequence[int]
    tasks: Sequence[int]
    exact: Sequence[float]
    target_rate: Sequence[float]
    true_rate: Sequence[float]
    wanted_capacity: Sequence[float]
    outside_band: Sequence[bool]
    kept: Mapping[int, str]
    """Operators without a decision, and why."""

    def reason(self, i: int, after: int) -> str:
        now, exact = self.current[i], self.exact[i]
        change = self._change(now, self.tasks[i], after)
        if i in self.kept:
            return f"{self.kept[i]}, {change}"
        if math.isinf(self.true_rate[i]):
            return f"nothing was read, {change}"
        fitted = "" if math.ceil(exact) == self.tasks[i] else f", fitted to its limits {self.tasks[i]}"
        return (
            f"{amount(self.target_rate[i])} records/s come in, which calls for a capacity of "
            f"{amount(self.wanted_capacity[i])}, and {tasks(now)} can do {amount(self.true_rate[i])}: "
            f"{exact:,.6g}{fitted}, {change}"
        )

    @staticmethod
    def _change(now: int, wanted: int, after: int) -> str:
        if after == now:
            return f"so {tasks(now)}, as now" if wanted == now else f"but {tasks(now)}, as now, until it is due"
        most = "" if wanted == after else " as the most that was wanted while it waited"
        return f"so {tasks(after)}{most}, instead of {now}"


@dataclass(frozen=True)
class _Planned:
    """A recommendation, kept for the history until its rescale is reported."""

    time_s: float
    targets: _Targets
    after: Sequence[int]
    changed: Sequence[int]

    def scaling(self, i: int) -> tuple[str, PastScaling]:
        """The operator's name, and its share of the rescale."""
        true_rate, now = self.targets.true_rate[i], self.targets.current[i]
        expected = true_rate * self.targets.exact[i] / now if math.isfinite(true_rate) else math.inf
        return self.targets.names[i], PastScaling(self.time_s, now, self.after[i], true_rate, expected)


class FlinkAutoscaler:
    """The policy `flink`."""

    name = "flink"

    def __init__(self, settings: FlinkSettings) -> None:
        self._settings = settings
        self._window = MetricWindow(settings)
        self._history = ScalingHistory(settings)
        self._delayed = DelayedScaleDowns(settings.scale_down_interval_s)
        self._restarts = RestartTimes(settings)
        self._planned: _Planned | None = None
        self._last_rescale: Rescaled | None = None
        self._layout: tuple[object, Topology] | None = None
        self._running: tuple[object, dict[str, int]] | None = None
        """The last edges and tasks."""

    @property
    def interval_s(self) -> float:
        return self._settings.reconcile_interval_s

    def decide(self, rates: Rates) -> Decision:
        """Tasks for the required capacity, regardless of the utilisation band and of the delay of scale-downs."""
        topology = self._topology(rates)
        sample = Sample.of(rates, topology, self._settings)
        restart_s = self._settings.restart_time_s
        evaluated = evaluate(sample.window(topology), topology, self._settings, restart_s)
        targets = self._targets(rates, topology, evaluated, sample.unrated, 1.0)
        return self._decision(rates, targets, targets.tasks)

    def observe(self, facts: Facts) -> Recommendation:
        running_since_s = self._take_note(facts)
        topology = self._topology(facts.rates)
        sample = Sample.of(facts.rates, topology, self._settings)
        waiting = self._window.add(sample, facts.time_s, facts.interval_s, running_since_s)
        if waiting is not None:
            return Recommendation(None, f"The autoscaler waits: {waiting}.")
        restart_s = self._restarts.expected_s(facts.time_s)
        evaluated = evaluate(self._window.mean(topology), topology, self._settings, restart_s)
        scalability = self._history.scalability(topology.names, facts.time_s)
        targets = self._targets(facts.rates, topology, evaluated, sample.unrated, scalability)
        return self._recommend(facts, evaluated, targets)

    def _take_note(self, facts: Facts) -> float:
        """Update the history since the last call. Returns when the job was last started, seconds."""
        rescale, rates = facts.last_rescale, facts.rates
        running = (rates.edges, {name: metrics.parallelism for name, metrics in rates.operators.items()})
        if rescale != self._last_rescale and rescale is not None:
            self._restarts.add(rescale.ended_s, rescale.downtime_s)
            if self._planned is not None:
                for i in self._planned.changed:
                    self._history.add(*self._planned.scaling(i))
            self._delayed.clear()
            self._window.clear()
        elif running != self._running:
            self._window.clear()
        self._planned = None
        self._last_rescale, self._running = rescale, running
        return rescale.ended_s if rescale else 0.0

    def _topology(self, rates: Rates) -> Topology:
        edges = (rates.edges, rates.edge_shares)
        if self._layout is None or self._layout[0] != edges:
            self._layout = (edges, Topology.of(rates))
        return self._layout[1]

    def _targets(
        self,
        rates: Rates,
        topology: Topology,
        evaluated: Evaluated,
        unrated: frozenset[int],
        scalability: Sequence[float] | float,
    ) -> _Targets:
        """Of every operator, in topological order."""
        settings = self._settings
        operators = [rates.operators.get(name) for name in topology.names]
        current = np.array([metrics.parallelism if metrics else 1 for metrics in operators])
        factors = scaling_factors(evaluated.wanted_capacity, evaluated.true_rate, scalability, settings)
        after = parallelism(current, factors, Bounds.of(operators, current, settings), settings.alignment)
        now = current.tolist()
        kept = dict.fromkeys(unrated, "what it can do is not known")
        if settings.vertex_exclude_ids:
            excluded = (i for i, name in enumerate(topology.names) if name in settings.vertex_exclude_ids)
            kept |= dict.fromkeys(excluded, "it is not to be scaled")
        for i in kept:
            after[i] = now[i]
        outside = (evaluated.true_rate < evaluated.scale_up_below) | (evaluated.true_rate > evaluated.scale_down_above)
        return _Targets(
            names=topology.names,
            rated=[metrics is not None for metrics in operators],
            current=now,
            tasks=after,
            exact=(factors * current).tolist(),
            target_rate=evaluated.target_rate.tolist(),
            true_rate=evaluated.true_rate.tolist(),
            wanted_capacity=evaluated.wanted_capacity.tolist(),
            outside_band=outside.tolist(),
            kept=kept,
        )

    def _recommend(self, facts: Facts, evaluated: Evaluated, targets: _Targets) -> Recommendation:
        changing = [
            i for i, (now, after) in enumerate(zip(targets.current, targets.tasks, strict=True)) if now != after
        ]
        self._delayed.keep({targets.names[i] for i in changing if targets.tasks[i] < targets.current[i]})
        due = {i: self._due(targets, i, facts.time_s) for i in changing}
        changes = {i: change for i, change in due.items() if change is not None}
        if any(change.outside_band for change in changes.values()):
            return self._deploy(facts, targets, changes)
        content = self._held(targets, [i for i in changing if i not in changes])
        backlog = "; a backlog is being processed" if evaluated.processing_backlog else ""
        return Recommendation(None, f"The autoscaler leaves the job as it is: {content}{backlog}.")

    def _due(self, targets: _Targets, i: int, now_s: float) -> WantedTasks | None:
        """The change of an operator to make now; None to leave it."""
        name, now, after = targets.names[i], targets.current[i], targets.tasks[i]
        wanted = WantedTasks(now_s, after, targets.outside_band[i])
        if after < now and self._settings.is_release_1_6:
            last, interval_s = self._last(name, now_s), self._settings.scale_down_interval_s
            return None if was_just_scaled_up(last, now, now_s, interval_s) else wanted
        if after < now:
            return self._delayed.want(name, wanted)
        if self._settings.blocks_ineffective and is_ineffective(
            self._last(name, now_s), now, targets.true_rate[i], self._settings.effectiveness_threshold
        ):
            return None
        return wanted

    def _last(self, name: str, now_s: float) -> PastScaling | None:
        earlier = self._history.of(name, now_s)
        return earlier[-1] if earlier else None

    def _held(self, targets: _Targets, held: Sequence[int]) -> str:
        """Why nothing is done, from the first operator whose change is held back."""
        if not held:
            return "every operator is within its utilisation band"
        name, now, after = targets.names[held[0]], targets.current[held[0]], targets.tasks[held[0]]
        more = f", and {len(held) - 1} more operators wait" if len(held) > 1 else ""
        if after < now:
            interval_s = self._settings.scale_down_interval_s
            if self._settings.is_release_1_6:
                return f"{name} needs only {tasks(after)}, but was scaled up less than {interval_s:g} s ago{more}"
            return f"{name} has needed only {tasks(after)} for less than {interval_s:g} s{more}"
        return f"{name} should have {tasks(after)}, but its last scale-up had almost no effect{more}"

    def _deploy(self, facts: Facts, targets: _Targets, changes: dict[int, WantedTasks]) -> Recommendation:
        after = list(targets.current)
        for i, change in changes.items():
            after[i] = change.tasks
        self._planned = _Planned(facts.time_s, targets, after, tuple(changes))
        decision = self._decision(facts.rates, targets, after)
        name = next(targets.names[i] for i, change in changes.items() if change.outside_band)
        remark = f"{changes_in_words(decision, facts.rates)}: at {name}, {decision.reasons[name]}"
        return Recommendation(decision, f"The autoscaler scales {remark}.")

    def _decision(self, rates: Rates, targets: _Targets, after: Sequence[int]) -> Decision:
        rated = [(i, name) for i, name in enumerate(targets.names) if targets.rated[i]]
        parallelism = {name: after[i] for i, name in rated}
        memory = {name: m.memory_mb for name, m in rates.operators.items() if m.memory_mb is not None}
        reasons = {name: targets.reason(i, after[i]) for i, name in rated}
        if self._settings.memory_tuning_enabled:
            tuned = self._tune(rates, parallelism)
            memory = dict.fromkeys(parallelism, tuned.managed / self._settings.task_slots / MIB)
            remark = f"; TaskManagers are tuned to {tuned.process / MIB:,.0f} MiB, {tuned.managed / MIB:,.0f} of them managed"
            reasons = {name: reason + remark for name, reason in reasons.items()}
        return Decision(
            parallelism=parallelism,
            exact={name: targets.exact[i] for i, name in rated if i not in targets.kept},
            memory_mb=memory,
            reasons=reasons,
        )

    def _tune(self, rates: Rates, after: dict[str, int]) -> TunedMemory:
        """TaskManagers with a slot for every task. Edges count as all-to-all, since the rates do not show partitionings."""
        use = rates.task_manager_use
        if use is None:
            raise InvalidInput(
                "memory.tuning.enabled needs the heap and metaspace that TaskManagers use; add task_manager_use to the rates"
            )
        before = {name: metrics.parallelism for name, metrics in rates.operators.items()}
        stateful = (m for m in rates.operators.values() if m.memory_mb and m.state_mb != 0)
        managed = sum(m.memory_mb * m.parallelism for m in stateful if m.memory_mb)
        return tune(
            MemoryUse(int(use.heap_mb * MIB), int(use.metaspace_mb * MIB), math.ceil(managed * MIB)),
            (Channels(a, b) for a, b in rates.edges if a in before and b in before),
            before,
            after,
            sum(before.values()),
            self._settings,
        )
