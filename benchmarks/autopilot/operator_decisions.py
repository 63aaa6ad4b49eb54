"""Whether the policy `flink` decides as the operator's autoscaler does, of which it is a port: both on the same metrics.

    python -m benchmarks.autopilot.operator_decisions [--seeds 20] [--minutes 360]

The original is release 1.10.0 from Maven, on a clock of its own (`acting/operator_autoscaler/`). A job of three vertices in a
line is made up: its rate follows a wave or a random walk, what a task takes is drawn, and lag grows where tasks are too few.
Every minute both are shown the same metrics. What the original wants is done, with half a minute of downtime, so that one
disagreement does not make others. Nothing was chosen on these seeds. Scale-downs are not delayed: releases do that differently,
and the port follows the newest, by sequences of its tests (tests/models/scaling/flink/test_sequences.py).

| column | meaning |
|---|---|
| decisions | minutes in which at least one of them changes a task, or neither does |
| rescales | of the original |
| same | decisions that are equal, task by task |
| same rescales | of the minutes in which at least one of them rescales |
| one off | of those, the ones that differ by one task in each vertex at most |
"""

import argparse
import math
import subprocess
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Final

from pydantic import JsonValue
from rich.console import Console
from rich.table import Table

from benchmarks.arena.studies.demeter import SETTINGS as STUDIED
from benchmarks.autopilot.acting.operator_autoscaler import original
from models.scaling.policies import make_policy
from models.scaling.policy import Facts, Rescaled
from models.scaling.rates import Rates

DEMETERS: Final = STUDIED["flink"]
NAMES: Final = ("source", "work", "sink")
MINUTE_S: Final = 60.0
DOWN_S: Final = 30.0
EPOCH_S: Final = 1_700_000_000.0
MOST_TASKS: Final = 200
NOT_COMPARED: Final = {"operator.release", "vertex.max-parallelism"}
"""Settings of the study that the port alone has, or that limit the made-up job."""
SETTINGS: Final[Mapping[str, Mapping[str, JsonValue]]] = {
    "defaults": {"scale-down.interval": "0 s"},
    "documented example": {
        "stabilization.interval": "1 min",
        "metrics.window": "5 min",
        "utilization.target": 0.6,
        "target.utilization.boundary": 0.2,
        "restart.time": "2 min",
        "catch-up.duration": "5 min",
        "scale-down.interval": "0 s",
    },
    "Demeter's": {name: DEMETERS[name] for name in DEMETERS.keys() - NOT_COMPARED} | {"scale-down.interval": "0 s"},
}


@dataclass
class MadeUpJob:
    """The job, as its tasks would report it."""

    rng: Random
    wave: bool
    tasks: dict[str, int] = field(default_factory=lambda: dict.fromkeys(NAMES, 8))
    now_s: float = 0.0
    started_s: float = 0.0
    lag: float = 0.0

    def __post_init__(self) -> None:
        self.takes = {name: self.rng.uniform(200.0, 3000.0) for name in NAMES}
        """Records/s of one busy task."""
        self.rate = 4.0 * min(self.takes.values())
        self.mean, self.phase = self.rate, self.rng.uniform(0, 2 * math.pi)
        self.read = 0.0
        self.busy_ms = dict.fromkeys(NAMES, 0.0)

    def minute(self) -> tuple[str, Facts]:
        """A minute passes; what the original is shown, and the port."""
        self._arrive()
        up_s = min(MINUTE_S, self.now_s + MINUTE_S - self.started_s)
        self.now_s += MINUTE_S
        most = min(self.takes[name] * self.tasks[name] for name in NAMES)
        due = self.lag + self.rate * MINUTE_S
        flow = min(most, due / up_s)
        before, self.lag = self.lag, max(due - flow * up_s, 0.0)
        busy = {name: flow / (self.takes[name] * self.tasks[name]) for name in NAMES}
        held = 1 - busy["source"] if self.lag and busy["source"] < 1 else 0.0
        self.read += flow * up_s
        for name in NAMES:
            self.busy_ms[name] += 1000 * busy[name] * up_s * self.tasks[name]
        return self._line(flow, busy, held), self._facts(flow, busy, held, (self.lag - before) / MINUTE_S, up_s)

    def rescale(self, tasks: Mapping[str, int]) -> None:
        self.tasks = dict(tasks)
        self.started_s = self.now_s + DOWN_S
        self.read, self.busy_ms = 0.0, dict.fromkeys(NAMES, 0.0)

    def _arrive(self) -> None:
        if self.wave:
            turn = 2 * math.pi * self.now_s / 7200 + self.phase
            self.rate = self.mean * (1 + 0.7 * math.sin(turn)) * self.rng.uniform(0.95, 1.05)
        else:
            self.rate = min(max(self.rate * self.rng.uniform(0.85, 1.18), 0.2 * self.mean), 5 * self.mean)

    def _line(self, flow: float, busy: Mapping[str, float], held: float) -> str:
        shown = [f"{1000 * (EPOCH_S + self.now_s):.0f}", f"{1000 * (EPOCH_S + self.started_s):.0f}", f"{self.lag:.6f}"]
        for name in NAMES:
            shown += [str(self.tasks[name]), str(MOST_TASKS), f"{self.read:.6f}", f"{self.read:.6f}"]
            shown += [
                f"{self.busy_ms[name]:.6f}",
                f"{flow:.6f}",
                f"{busy[name]:.9f}",
                f"{held if name == 'source' else 0:.9f}",
            ]
        return " ".join(shown)

    def _facts(self, flow: float, busy: Mapping[str, float], held: float, growth: float, up_s: float) -> Facts:
        operators: dict[str, dict[str, float]] = {}
        for name in NAMES:
            true = self.takes[name] * self.tasks[name]
            operators[name] = {
                "parallelism": self.tasks[name],
                "max_parallelism": MOST_TASKS,
                "true_processing_rate": true,
                "true_output_rate": true,
                "observed_input_rate": flow,
                "observed_output_rate": flow,
                "busyness": min(busy[name], 1.0),
                "max_busyness": min(busy[name], 1.0),
            }
        operators["source"] |= {"lag_records": self.lag, "lag_change_per_s": growth, "backpressure": held}
        rates = Rates.model_validate(
            {
                "edges": [("source", "work"), ("work", "sink")],
                "source_rates": {"source": self.rate},
                "operators": operators,
            }
        )
        last = Rescaled(self.started_s, DOWN_S, 0.0) if self.started_s else None
        return Facts(self.now_s, up_s, rates, last)


@dataclass
class Agreement:
    decisions: int = 0
    rescales: int = 0
    same: int = 0
    moved: int = 0
    same_moved: int = 0
    one_off: int = 0

    def count(self, before: Mapping[str, int], original: Mapping[str, int], port: Mapping[str, int]) -> None:
        same, moved = original == port, before not in (original, port) or original != port
        self.decisions += 1
        self.rescales += original != before
        self.same += same
        if moved:
            self.moved += 1
            self.same_moved += same
            self.one_off += not same and all(abs(original[name] - port[name]) <= 1 for name in NAMES)


def compare(name: str, seeds: int, minutes: int, folder: Path) -> Agreement:
    """Of one kind of settings, over all seeds."""
    found = Agreement()
    for seed in range(seeds):
        job = MadeUpJob(Random(seed), wave=seed % 2 == 0)
        policy = make_policy("flink", dict(SETTINGS[name]))
        with original(SETTINGS[name], folder) as process:
            for _ in range(minutes):
                line, facts = job.minute()
                wanted = dict(zip(NAMES, map(int, _answer(process, line).split()), strict=True))
                deploy = policy.observe(facts).deploy
                port = job.tasks if deploy is None else job.tasks | deploy.parallelism
                found.count(job.tasks, wanted, port)
                if wanted != job.tasks:
                    job.rescale(wanted)
    return found


def _answer(process: "subprocess.Popen[str]", line: str) -> str:
    assert process.stdin is not None and process.stdout is not None
    process.stdin.write(line + "\n")
    process.stdin.flush()
    return process.stdout.readline()


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--minutes", type=int, default=360)
    given = parser.parse_args()
    table = Table("settings", title=f"{given.seeds} seeds, {given.minutes} minutes each")
    for column in ("decisions", "rescales", "same", "same rescales", "one off"):
        table.add_column(column, justify="right")
    with tempfile.TemporaryDirectory() as folder:
        for name in SETTINGS:
            found = compare(name, given.seeds, given.minutes, Path(folder))
            table.add_row(
                name,
                f"{found.decisions:,}",
                f"{found.rescales:,}",
                f"{found.same:,} ({found.same / found.decisions:.1%})",
                f"{found.same_moved:,} of {found.moved:,}",
                f"{found.one_off:,}",
            )
    Console(width=120).print(table)


if __name__ == "__main__":
    main()
