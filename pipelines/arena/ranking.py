"""The ranking of policies in each group of cells, by their cost at equal attainment.

For each job, workload and rescale mode: the policies that hold the attainment, by their task-hours on the frontier there;
then the others, by the smallest share of late records that they reach. Figures are means over the seeds.
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean

from pipelines.arena.bound.lower import lower_bound
from pipelines.arena.grid import Finished
from pipelines.arena.replays.cell import Cell
from pipelines.arena.replays.compute import start, with_key_groups
from pipelines.arena.request import EvaluationRequest, RescaleMode
from pipelines.arena.scoring.frontier import holds
from pipelines.arena.scoring.runs import by_value
from pipelines.arena.scoring.scores import GroupScore, PolicyScore, group_score
from pipelines.arena.scoring.verdict import verdict


@dataclass(frozen=True)
class Standing:
    """A policy on one job and workload, with one value of its knob: means over the seeds."""

    job: str
    workload: str
    policy: str
    value: float
    """Of the knob."""
    late_share: float
    """Share of records that wait longer than the objective; 0 where none arrived."""
    latency_p50_s: float | None
    latency_p95_s: float | None
    throughput_ratio: float | None
    task_hours: float
    memory_gib_hours: float
    rescales: float
    downtime_s: float
    convergence_s: float | None
    """None if it did not converge with all seeds, or the workload has no lasting changes."""
    convergence_steps: float
    seeds: int
    holds: bool
    """Whether enough records are within the objective."""


@dataclass(frozen=True)
class Ranking:
    """The policies of one job, workload and rescale mode, best first, and why."""

    rescale_mode: RescaleMode
    group: GroupScore
    settings: tuple[tuple[Standing, ...], ...]
    """Of each policy, in the order of `group`, by the value of its knob."""
    reason: str
    bound_hours: float | None
    """Task-hours below which no policy holds the attainment, mean over the seeds; None if no policy can."""

    def gap(self, score: PolicyScore) -> float | None:
        """By how much the cost of a policy is above the bound, as a share of it; None without either."""
        if score.attained is None or self.bound_hours is None:
            return None
        return score.attained.task_hours / self.bound_hours - 1.0

    @property
    def job(self) -> str:
        return self.group.job

    @property
    def workload(self) -> str:
        return self.group.workload

    @property
    def standings(self) -> tuple[Standing, ...]:
        """Of each policy, with the setting to run."""
        return tuple(
            next(one for one in own if one.value == score.best.value)
            for own, score in zip(self.settings, self.group.policies, strict=True)
        )

    def settings_of(self, policy: str) -> tuple[Standing, ...]:
        """How a policy stands with each value of its knob."""
        return next(own for own in self.settings if own[0].policy == policy)

    @property
    def scored(self) -> list[tuple[PolicyScore, Standing]]:
        """Each policy's score, and how it stands with the setting to run."""
        return list(zip(self.group.policies, self.standings, strict=True))

    @property
    def name(self) -> str:
        return f"{self.job}, {self.workload}, {self.rescale_mode}"

    @property
    def winner(self) -> Standing:
        return self.standings[0]


def rank(finished: Sequence[Finished], request: EvaluationRequest) -> list[Ranking]:
    """One ranking for each job, workload and rescale mode, in order of appearance; starts count as seeds do."""
    groups: dict[tuple[str, str, RescaleMode], list[Finished]] = defaultdict(list)
    for one in finished:
        groups[one.cell.job.name, one.cell.workload.name, one.cell.rescale_mode].append(one)
    return [_ranking(own, mode, request) for (_, _, mode), own in groups.items()]


def _ranking(finished: Sequence[Finished], mode: RescaleMode, request: EvaluationRequest) -> Ranking:
    group = group_score(finished, request.objective_of(mode), request.attainment)
    settings = []
    for score in group.policies:
        own = by_value(one for one in finished if one.cell.policy == score.policy)
        points = {point.value: point.late_share for point in score.points}
        standings = [_standing(runs, value, points[value], request.attainment) for value, runs in own.items()]
        settings.append(tuple(standings))
    return Ranking(mode, group, tuple(settings), verdict([group]).sentence, _bound_hours(finished, group))


def _bound_hours(finished: Sequence[Finished], group: GroupScore) -> float | None:
    """Mean over the seeds of the least of their starts, which differ only where they decide the job's key groups."""
    alike = {(one.cell.seed, _key_groups(one.cell)): one.cell for one in finished}
    hours: dict[int, list[float]] = {one.cell.seed: [] for one in finished}
    for cell in alike.values():
        if (bound := lower_bound(cell, group.objective_s, group.attainment)) is not None:
            hours[cell.seed].append(bound.task_hours)
    return _mean([min(own, default=None) for own in hours.values()])


def _key_groups(cell: Cell) -> int | None:
    return with_key_groups(cell.job, start(cell).parallelism).key_groups


def _standing(runs: Sequence[Finished], value: float, late_share: float, attainment: float) -> Standing:
    cell, outcomes = runs[0].cell, [run.outcome for run in runs]
    return Standing(
        job=cell.job.name,
        workload=cell.workload.name,
        policy=cell.policy,
        value=value,
        late_share=late_share,
        latency_p50_s=_mean([o.latency_p50_s for o in outcomes]),
        latency_p95_s=_mean([o.latency_p95_s for o in outcomes]),
        throughput_ratio=_mean([o.throughput_ratio for o in outcomes]),
        task_hours=fmean(o.task_hours for o in outcomes),
        memory_gib_hours=fmean(o.memory_gib_hours for o in outcomes),
        rescales=fmean(o.rescales for o in outcomes),
        downtime_s=fmean(o.downtime_s for o in outcomes),
        convergence_s=_mean([o.convergence_s for o in outcomes]),
        convergence_steps=fmean(o.convergence_steps for o in outcomes),
        seeds=len({run.cell.seed for run in runs}),
        holds=holds(late_share, attainment),
    )


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return fmean(known) if known and len(known) == len(values) else None
