"""Why findings of the evaluation of autoscalers do not come out: each supposed cause is changed, one at a time.

    python -m benchmarks.arena.evaluation.causes --workspace FOLDER [--causes cooldown,join] [--seed 1066]

A cause (`changes.py`) is a change of the replays of `findings.py`, and the findings that it may explain. Only the replays that
a finding looks at are made; each is stored in the workspace, so a killed run resumes. A finding that comes out with the change
is explained by it as far as the simulator goes; one that does not is not explained by it.
"""

import argparse
import sys
from collections.abc import Iterator, Mapping
from functools import cache, partial
from typing import Final

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from benchmarks.arena.evaluation.changes import CAUSES, Cause
from benchmarks.arena.evaluation.runs import JOBS, SETTINGS, Replay, Replays
from benchmarks.arena.evaluation.statements import FINDINGS
from models.job import Job
from models.scaling.dhalion import Dhalion, DhalionSettings
from models.scaling.policies import make_policy
from pipelines.arena.grid import run_cells
from pipelines.arena.replays.cell import Cell, CellResult
from pipelines.arena.replays.compute import capacity, start, testbed, with_key_groups
from pipelines.arena.replays.outcome import outcome, table
from pipelines.arena.replays.replay import replay
from pipelines.arena.replays.workloads import Pattern, pattern
from pipelines.arena.request import SEED, recommended_settings
from pipelines.inputs.catalogue import load_cluster, load_job
from pipelines.store.workspace import Workspace

MODE: Final = "savepoint"


class LazyReplays(Replays):
    """Replays with a cause changed, made when a check looks at them."""

    def __init__(self, name: str, cause: Cause, url: str, seed: int) -> None:
        super().__init__(())
        self._cause, self._seed = cause, seed
        self._workspace = Workspace(f"{url.rstrip('/')}/{name}")

    def one(self, job: str, workload: str, policy: str) -> Replay:
        if (job, workload, policy) not in self._found:
            self._found[job, workload, policy] = self._replayed(job, workload, policy)
        return self._found[job, workload, policy]

    def _replayed(self, job: str, workload: str, policy: str) -> Replay:
        cell = _cell(self._cause, JOBS[job], workload, policy, self._seed)
        (done,) = run_cells([cell], self._workspace, compute=partial(_computed, self._cause))
        trace = done.trace(self._workspace)
        return Replay(job, workload, policy, cell.cluster.slots, done.outcome, done.rescales, trace)


@cache
def _peak_rate(job_json: str) -> float:
    return capacity(Job.model_validate_json(job_json), load_cluster("arena")).rate


def _cell(cause: Cause, job_name: str, workload: str, policy: str, seed: int) -> Cell:
    job = cause.job(load_job(job_name))
    peak = cause.peak_share * _peak_rate(job.model_dump_json(by_alias=True))
    settings = recommended_settings(policy, MODE) | SETTINGS[policy]
    return Cell.model_validate(
        {
            "job": job,
            "cluster": load_cluster("arena"),
            "workload": cause.workload(pattern(Pattern(workload), peak, seed)),
            "policy": policy,
            "settings": {**settings, **(cause.hpa if policy.startswith("hpa") else {})},
            "rescale_mode": MODE,
            "burn_in_s": 0,
            "seed": seed,
            **cause.cell,
        }
    )


def _computed(cause: Cause, cells: Mapping[str, Cell]) -> Iterator[tuple[str, CellResult]]:
    """As `run_cell`, with the metrics of the cause."""
    for key, cell in cells.items():
        begin = start(cell)
        job = with_key_groups(cell.job, begin.parallelism)
        policy = make_policy(cell.policy, cell.settings)
        if isinstance(policy, Dhalion):
            policy = cause.dhalion(DhalionSettings.model_validate(cell.settings))
        trace = replay(
            testbed(cell), job, cell.workload, policy, begin,
            least_between_s=cell.least_between_s, metrics=cause.metrics(cell.seed),
        )  # fmt: skip
        yield key, CellResult(outcome(trace, cell.workload, cell.burn_in_s), trace.rescales, table(trace))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--workspace", required=True, help="folder or URL where replays are stored")
    parser.add_argument("--causes", default=",".join(CAUSES))
    parser.add_argument("--seed", type=int, default=SEED)
    given = parser.parse_args()
    console = Console(width=None if sys.stdout.isatty() else 170)
    found = Table(title="Findings with one cause changed", show_lines=True)
    for column in ("change", "finding", "measured", "comes out"):
        found.add_column(column)
    papers = {finding.check: finding.paper for finding in FINDINGS}
    for name in given.causes.split(","):
        all_ = LazyReplays(name, CAUSES[name], given.workspace, given.seed)
        for check in CAUSES[name].checks:
            measured, agrees = check(all_)
            console.print(f"{name}, {check.__name__}: {escape(measured)}: {'yes' if agrees else 'no'}")
            paper = papers.get(check, check.__doc__ or "")
            found.add_row(CAUSES[name].what, escape(paper), escape(measured), "yes" if agrees else "no")
    console.print(found)


if __name__ == "__main__":
    main()
