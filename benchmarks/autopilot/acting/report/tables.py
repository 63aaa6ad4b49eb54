"""Runs as tables."""

from collections.abc import Callable, Mapping, Sequence
from statistics import median
from typing import Final

from rich.table import Table

from benchmarks.autopilot.acting.report.prediction import beside_arena
from benchmarks.autopilot.acting.run import ActingRun
from benchmarks.autopilot.acting.scores import ActingScores

COLUMNS: Final[Mapping[str, tuple[Callable[[ActingScores], float], str]]] = {
    "p50 s": (lambda s: s.p50_s, ".1f"),
    "p95 s": (lambda s: s.p95_s, ".1f"),
    "p99 s": (lambda s: s.p99_s, ".1f"),
    "within 5 s": (lambda s: 100 * s.within["5"], ".1f"),
    "within 10 s": (lambda s: 100 * s.within["10"], ".1f"),
    "within 60 s": (lambda s: 100 * s.within["60"], ".1f"),
    "task-min": (lambda s: s.task_minutes, ",.0f"),
    "slot-min": (lambda s: s.slot_minutes, ",.0f"),
    "rescales": (lambda s: s.rescales, ".0f"),
    "down s": (lambda s: s.downtime_s, ".0f"),
}
"""Shares in per cent."""


def grouped(runs: Sequence[ActingRun]) -> dict[tuple[str, str], dict[str, list[ActingScores]]]:
    """By job and trace, and then by contender: one for each run, in their order."""
    found: dict[tuple[str, str], dict[str, list[ActingScores]]] = {}
    for run in runs:
        for name, one in run.scores.items():
            contender, kind, trace = name.split(".")
            found.setdefault((kind, trace), {}).setdefault(contender, []).append(one)
    return found


def run_tables(runs: Sequence[ActingRun]) -> list[Table]:
    """Medians over runs, and all values where they differ, one table for each job and trace."""
    tables = []
    for (kind, trace), by_contender in sorted(grouped(runs).items()):
        table = Table("contender", *COLUMNS, title=f"{kind}, {trace}")
        for name, several in sorted(by_contender.items(), key=lambda one: median(s.p95_s for s in one[1])):
            table.add_row(name, *(_cell(value, form, several) for value, form in COLUMNS.values()))
        tables.append(table)
    return tables


def _cell(value: Callable[[ActingScores], float], form: str, several: Sequence[ActingScores]) -> str:
    texts = [format(value(one), form) for one in several]
    middle = format(median(value(one) for one in several), form)
    return middle if len(set(texts)) == 1 else f"{middle} ({', '.join(texts)})"


def conditions(runs: Sequence[ActingRun]) -> Table:
    table = Table("run", "Flink", "began, UTC", "processors busy", "records short")
    for run in runs:
        table.add_row(str(run.repetition), run.flink, run.began, f"{run.cpu_busy:.0%}", f"{run.feed_short:,}")
    return table


def arena_tables(runs: Sequence[ActingRun]) -> list[Table]:
    """What was measured, and what the arena says."""
    tables = []
    for (kind, trace), by_contender in sorted(grouped(runs).items()):
        found = beside_arena(kind, trace, by_contender)
        table = Table(
            *("contender", "mean tasks", "arena", "off", "p95 s", "arena", "rescales", "arena"),
            title=f"{kind}, {trace}: Kendall's tau {found.tau_sizes:.2f} of sizes, {found.tau_p95:.2f} of p95",
        )
        errors = found.size_errors()
        for name, (size, of_arena) in found.sizes.items():
            p95, rescales = found.p95_s[name], found.rescales[name]
            cells = [f"{size:.1f}", f"{of_arena:.1f}", f"{errors[name]:+.0%}", f"{p95[0]:.0f}", f"{p95[1]:.0f}"]
            table.add_row(name, *cells, f"{rescales[0]:.0f}", f"{rescales[1]:.0f}")
        tables.append(table)
    return tables
