"""The scores of all policies in one group of cells: a job under a workload, in a rescale mode."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Self

from models.scaling.policies import POLICIES
from pipelines.arena.grid import Finished
from pipelines.arena.scoring.frontier import (
    REFERENCE,
    AttainedCost,
    AttainmentCost,
    FrontierPoint,
    NotAttained,
    attainment_cost,
    frontier,
    holds,
    hypervolume,
)
from pipelines.arena.scoring.runs import SettingRuns, by_value, setting_runs


@dataclass(frozen=True)
class PolicyScore:
    """A policy in a group."""

    policy: str
    runs: tuple[SettingRuns, ...]
    """By the value of its knob, ascending."""
    front: tuple[FrontierPoint, ...]
    cost: AttainmentCost
    hypervolume: float
    """0-1; see `pipelines.arena.scoring.frontier`."""
    hypervolume_rank: int
    """From 1, among the policies of the group."""
    best: FrontierPoint
    """The setting to run: of those that hold the attainment the one with the fewest task-hours; else the most punctual."""

    @property
    def knob(self) -> str:
        """The setting that is varied."""
        return POLICIES[self.policy].knob.setting

    @property
    def attained(self) -> AttainedCost | None:
        """What the attainment costs; None if no setting holds it."""
        return self.cost if isinstance(self.cost, AttainedCost) else None

    @property
    def points(self) -> tuple[FrontierPoint, ...]:
        """All settings, by the value of the knob."""
        return tuple(run.point() for run in self.runs)

    @property
    def order(self) -> tuple[bool, float, float]:
        """Those that attain come first, by cost; then the others, by their least late share."""
        if isinstance(self.cost, NotAttained):
            return (True, self.cost.least_late_share, self.best.task_hours)
        return (False, self.cost.task_hours, self.best.late_share)


@dataclass(frozen=True)
class GroupScore:
    """All policies of a group, the best first."""

    job: str
    workload: str
    objective_s: int
    """Waiting time beyond which a record is late, seconds."""
    attainment: float
    """Share of the records that should be within it."""
    policies: tuple[PolicyScore, ...]

    @classmethod
    def of(
        cls,
        job: str,
        workload: str,
        objective_s: int,
        attainment: float,
        runs: Mapping[str, Sequence[SettingRuns]],
    ) -> Self:
        """The scores of policies with these settings and seeds."""
        fronts = {policy: frontier(run.point() for run in own) for policy, own in runs.items()}
        most = REFERENCE * max(point.task_hours for front in fronts.values() for point in front)
        volumes = {policy: hypervolume(front, most) for policy, front in fronts.items()}
        scores = [
            PolicyScore(
                policy=policy,
                runs=tuple(own),
                front=fronts[policy],
                cost=attainment_cost(fronts[policy], attainment),
                hypervolume=volumes[policy],
                hypervolume_rank=1 + sum(volume > volumes[policy] for volume in volumes.values()),
                best=next((p for p in fronts[policy] if holds(p.late_share, attainment)), fronts[policy][-1]),
            )
            for policy, own in runs.items()
        ]
        return cls(job, workload, objective_s, attainment, tuple(sorted(scores, key=lambda score: score.order)))

    @property
    def name(self) -> str:
        return f"{self.job} {self.workload}"

    def score(self, policy: str) -> PolicyScore:
        """Of a policy of the group."""
        return next(score for score in self.policies if score.policy == policy)

    def held_by(self, policy: str) -> bool:
        """Whether the policy attains the objective with some setting."""
        return self.score(policy).attained is not None


def group_score(finished: Sequence[Finished], objective_s: int, attainment: float) -> GroupScore:
    """The scores of the cells of one job, workload and rescale mode."""
    by_policy: dict[str, list[Finished]] = {}
    for one in finished:
        by_policy.setdefault(one.cell.policy, []).append(one)
    runs = {
        policy: [setting_runs(value, same, objective_s) for value, same in by_value(own).items()]
        for policy, own in by_policy.items()
    }
    cell = finished[0].cell
    return GroupScore.of(cell.job.name, cell.workload.name, objective_s, attainment, runs)
