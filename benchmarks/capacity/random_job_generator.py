"""Random streaming jobs, each made from a seed and a number alone.

Ranges are drawn log-uniformly unless "evenly" is said; costs are those of one record in.

Shape, each as likely as the others:
    chain           a source, stages, a sink
    split           a source, stages, then two branches of stages, each with its own sink
    union           two branches of stages that meet in a stage
    window join     two branches that meet in a tumbling, sliding or session window
    stateful join   two branches that meet in an operator that keeps both, with a time to live or for good
Two branches that meet begin at two sources in half of the jobs (one has 10 to 90 % of the rate, evenly), else at the end of
the first stages of one source. From there, both branches get every record in half of the jobs; else one gets 10 to 90 %,
evenly, and the other the rest. Three to ten operators, evenly (as many as the shape needs, at least): sources, sinks, what
the shape asks for, and stages, each put at a random place of the shape.

Stages: map 30 %, filter 20 % (keeps 0.02 to 1), flat map 10 % (1 to 5 records out), window 20 %, keyed state 20 %. After
three keyed operators only the first three kinds. The stage after a window that is not a session is, in 30 % of the cases, an
aggregation keyed by that window, as the maximum of nexmark-q5: all that fires at once has one key.

Costs: 1 to 100 us of CPU; with state 3 to 100; keyed by a window 1 to 10; sources 1 to 5; sinks 1 to 10. Records of 50 to
1,000 bytes from sources, 20 to 500 from others. Keyed operators read and write 16 to 512 bytes of state each. Records go to
keyed operators by hash, to the others forward (25 %) or in turn.

Windows: tumbling, sliding (by a half or a fifth) or session, equally likely, of 2, 5, 10, 20 or 30 s; 5 to 50 % of the cost,
evenly, when they fire; 0.002 to 0.5 records out; 1 to 200 bytes of state a record.
Keyed state and stateful joins: 0.05 to 2 records out; a time to live of 10, 60 or 300 s and 1 to 200 bytes a record (half),
or for good, 16 to 4,096 bytes a key. Half read all of their state, half only 0.01 to 1 of it.

Keys, each kind as likely as the others:
    even    1e5 to 1e7 keys
    few     1e3 to 1e4 keys
    Zipf    1e3 to 1e6 keys with an exponent of 0.5 to 1.2, evenly: the first has its share of that law, 1 / sum(k^-exponent);
            the others are even, since a job has one hot key at a time
    hot     1e3 to 1e6 keys, one of them with 5 to 75 % of the records, evenly
The hot key stays in half of the Zipf cases and a quarter of the hot ones; else another one is hot after 1e2 to 1e6 records.
Half of all key sets are permanent, half are replaced after 1 to 50 records a key.
Key groups: Flink's default (half), or 512, 720, 1,024 or 4,096.

Not drawn: broadcast edges, limits of parallelism (source partitions, few key groups), several hot keys at a time, rates that
change, watermarks that lag, state on remote storage.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, TypeVar

import numpy as np

from models.dataflow import Edge, Partitioning
from models.job import Cost, Keys, Kind, Operator, State, Window, WindowKind
from pipelines.inputs.job_files import JobFile

FEWEST: Final = {"chain": 3, "split": 4, "union": 5, "window join": 5, "stateful join": 5}
"""Operators that a shape needs; one less where its branches begin at two sources."""
MOST_OPERATORS: Final = 10
MOST_KEYED: Final = 3
NEVER: Final = 1e15
"""Records after which the hot key changes where it stays; no deployment sees so many."""
Choice = TypeVar("Choice")


@dataclass(frozen=True)
class RandomJob:
    """A job, and what to group it by."""

    job: JobFile
    traits: tuple[str, ...]
    """Its shape, and the kinds of its windows, state and keys."""


def random_job(seed: int, number: int) -> RandomJob:
    """The same for the same seed and number."""
    return _Builder(f"random-{seed}-{number}", _Draw(np.random.default_rng([seed, number]))).built()


class _Draw:
    """Random values, of three digits."""

    def __init__(self, rng: np.random.Generator) -> None:
        self._rng = rng

    def chance(self, probability: float) -> bool:
        return bool(self._rng.random() < probability)

    def among(self, choices: Sequence[Choice], weights: Sequence[float] | None = None) -> Choice:
        return choices[int(self._rng.choice(len(choices), p=weights))]

    def evenly(self, low: float, high: float) -> float:
        return float(f"{self._rng.uniform(low, high):.3g}")

    def by_log(self, low: float, high: float) -> float:
        return float(f"{np.exp(self._rng.uniform(np.log(low), np.log(high))):.3g}")


@dataclass(frozen=True)
class _End:
    """The end of a path, to be continued."""

    operator: str
    share: float = 1.0
    """Of the operator's records."""
    window: Window | None = None
    """Of the operator, if it has one."""


class _Builder:
    """Operators and edges, from the sources on."""

    def __init__(self, name: str, draw: _Draw) -> None:
        self._name, self._draw = name, draw
        self._operators: list[Operator] = []
        self._edges: list[Edge] = []
        self._traits: list[str] = []
        self._keyed = 0

    def built(self) -> RandomJob:
        draw = self._draw
        shape = draw.among(list(FEWEST))
        two_sources = shape not in ("chain", "split") and draw.chance(0.5)
        fewest = FEWEST[shape] - two_sources
        stages = draw.among(range(fewest, MOST_OPERATORS + 1)) - fewest
        self._traits += [shape, "two sources" if two_sources else "one source"]
        self._keyed = int(shape in ("window join", "stateful join"))
        self._compose(shape, two_sources, stages)
        groups = draw.among([512, 720, 1024, 4096]) if draw.chance(0.5) else None
        self._traits.append("default key groups" if groups is None else "fixed key groups")
        traits = tuple(dict.fromkeys(self._traits))
        job = JobFile(
            name=self._name,
            description=f"A random job: {', '.join(traits)}.",
            figures_from="drawn at random",
            key_groups=groups,
            operators=tuple(self._operators),
            edges=tuple(self._edges),
        )
        return RandomJob(job, traits)

    def _compose(self, shape: str, two_sources: bool, stages: int) -> None:
        """Args:
        stages: besides those that the shape needs.
        """
        meets = shape not in ("chain", "split")
        first, left, right, last = self._placed(stages, shape, two_sources)
        if two_sources:
            share = self._draw.evenly(0.1, 0.9)
            ends = [self._source(share), self._source(1 - share)]
        else:
            trunk = self._stages(self._source(1.0), first)
            if shape == "chain":
                self._sink(trunk)
                return
            ends = self._branches(trunk)
        ends = [self._stages(end, count) for end, count in zip(ends, (left, right), strict=True)]
        if not meets:
            for end in ends:
                self._sink(end)
            return
        merged = self._stage(ends) if shape == "union" else self._join(ends, shape)
        self._sink(self._stages(merged, last))

    def _placed(self, stages: int, shape: str, two_sources: bool) -> tuple[int, ...]:
        """Stages before the split, on each branch, and after they have met."""
        if shape == "chain":
            return (stages + 1, 0, 0, 0)
        own = 0 if two_sources or shape == "split" else 1
        counts = [int(shape == "split"), own, own, 0]
        places = [0, 1, 2] if shape == "split" else [1, 2, 3] if two_sources else [0, 1, 2, 3]
        for _ in range(stages):
            counts[self._draw.among(places)] += 1
        return tuple(counts)

    def _branches(self, trunk: _End) -> list[_End]:
        if self._draw.chance(0.5):
            return [trunk, trunk]
        share = self._draw.evenly(0.1, 0.9)
        return [_End(trunk.operator, part, trunk.window) for part in (share, 1 - share)]

    def _source(self, share: float) -> _End:
        cost = Cost(cpu_s=self._draw.by_log(1e-6, 5e-6), bytes_out=self._draw.by_log(50, 1000))
        return self._add("source", [], kind=Kind.SOURCE, cost=cost, rate_share=share)

    def _sink(self, end: _End) -> None:
        self._add("sink", [end], kind=Kind.SINK, cost=Cost(cpu_s=self._draw.by_log(1e-6, 1e-5)), selectivity=0.0)

    def _stages(self, end: _End, count: int) -> _End:
        for _ in range(count):
            end = self._stage([end])
        return end

    def _stage(self, ends: list[_End]) -> _End:
        draw, window, room = self._draw, ends[0].window, self._keyed < MOST_KEYED
        if room and len(ends) == 1 and window is not None and window.firing_interval_s is not None and draw.chance(0.3):
            return self._of_window(ends, window)
        kinds, weights = ["map", "filter", "flat-map", "window", "state"], [0.3, 0.2, 0.1, 0.2, 0.2]
        kind = draw.among(kinds, weights) if room else draw.among(kinds[:3], [1 / 2, 1 / 3, 1 / 6])
        if kind in ("window", "state"):
            self._keyed += 1
            return self._window(ends, kind) if kind == "window" else self._state(ends, kind)
        out = {"map": (1.0, 1.0), "filter": (0.02, 1.0), "flat-map": (1.0, 5.0)}[kind]
        cost = Cost(cpu_s=draw.by_log(1e-6, 1e-4), bytes_out=draw.by_log(20, 500))
        return self._add(kind, ends, cost=cost, selectivity=draw.by_log(*out))

    def _join(self, ends: list[_End], shape: str) -> _End:
        return self._window(ends, "join") if shape == "window join" else self._state(ends, "join")

    def _window(self, ends: list[_End], name: str) -> _End:
        draw = self._draw
        kind, length_s = draw.among(list(WindowKind)), draw.among([2.0, 5.0, 10.0, 20.0, 30.0])
        slide_s = length_s / draw.among([2, 5]) if kind is WindowKind.SLIDING else None
        window = Window(kind=kind, length_s=length_s, slide_s=slide_s, fire_share=draw.evenly(0.05, 0.5))
        self._traits.append(f"{kind} window")
        return self._add(
            name,
            ends,
            cost=self._cost_with_state(),
            selectivity=draw.by_log(0.002, 0.5),
            window=window,
            keys=self._keys(),
            state=State(bytes_per_record=draw.by_log(1, 200)),
        )

    def _state(self, ends: list[_End], name: str) -> _End:
        draw = self._draw
        read = 1.0 if draw.chance(0.5) else draw.by_log(0.01, 1.0)
        if draw.chance(0.5):
            ttl_s = draw.among([10.0, 60.0, 300.0])
            state = State(bytes_per_record=draw.by_log(1, 200), ttl_s=ttl_s, hot_set_ratio=read)
        else:
            state = State(bytes_per_key=draw.by_log(16, 4096), hot_set_ratio=read)
        self._traits.append("state for good" if state.ttl_s is None else "state with ttl")
        cost, out = self._cost_with_state(), draw.by_log(0.05, 2.0)
        return self._add(name, ends, cost=cost, selectivity=out, keys=self._keys(), state=state)

    def _of_window(self, ends: list[_End], window: Window) -> _End:
        """An aggregation of all that a window fires."""
        self._keyed += 1
        self._traits.append("keyed by window")
        return self._add(
            "of-window",
            ends,
            cost=self._cost_with_state(1e-6, 1e-5),
            selectivity=self._draw.by_log(0.002, 0.5),
            keys=Keys(distinct=1, hot_share=1.0, hot_period_s=window.firing_interval_s),
            state=State(bytes_per_key=128, ttl_s=window.length_s),
        )

    def _cost_with_state(self, least_s: float = 3e-6, most_s: float = 1e-4) -> Cost:
        draw = self._draw
        return Cost(
            cpu_s=draw.by_log(least_s, most_s),
            state_read_bytes=draw.by_log(16, 512),
            state_write_bytes=draw.by_log(16, 512),
            bytes_out=draw.by_log(20, 500),
        )

    def _keys(self) -> Keys:
        draw = self._draw
        kind = draw.among(["even", "few", "Zipf", "hot"])
        low, high = {"even": (1e5, 1e7), "few": (1e3, 1e4)}.get(kind, (1e3, 1e6))
        distinct, share, stays = round(draw.by_log(low, high)), 0.0, False
        if kind == "Zipf":
            exponent, stays = draw.evenly(0.5, 1.2), draw.chance(0.5)
            share = float(1 / np.sum(np.arange(1, distinct + 1) ** -exponent))
        elif kind == "hot":
            share, stays = draw.evenly(0.05, 0.75), draw.chance(0.25)
        moves = "" if share == 0 else ", stays" if stays else ", changes"
        self._traits.append(f"{kind} keys{moves}")
        return Keys(
            distinct=distinct,
            hot_share=share,
            hot_period_records=None if share == 0 else NEVER if stays else draw.by_log(1e2, 1e6),
            lifetime_records=None if draw.chance(0.5) else distinct * draw.by_log(1, 50),
        )

    def _add(self, kind_of: str, ends: list[_End], **figures: object) -> _End:
        name = f"{kind_of}-{len(self._operators)}"
        operator = Operator.model_validate({"name": name, "figures_from": "drawn at random", **figures})
        self._operators.append(operator)
        for end in ends:
            if operator.keys is not None:
                how = Partitioning.HASH
            else:
                how = Partitioning.FORWARD if self._draw.chance(0.25) else Partitioning.REBALANCE
            self._edges.append(Edge(upstream=end.operator, downstream=name, partitioning=how, share=end.share))
        return _End(name, window=operator.window)
