"""A plan for a running job at another rate: no testbed, and an interval that says what one observation leaves open."""

from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Final

from flink_client.rest.client import FlinkRest
from models.capacity.exploration.space import recorded_steps
from models.cluster import Cluster, WorkerOffer
from models.errors import SluiceError
from models.plan.content import Plan
from models.plan.parts import Lineage
from models.planning.assembling import Decisions, assemble
from models.planning.bounding import plan_bound
from models.planning.parallelism import BIDS2, scale
from models.planning.workers.planned import PlannedWorkers
from pipelines.inputs.catalogue import load_cluster_or_offer
from pipelines.inputs.plan_request import PlanRequest
from pipelines.measuring.exploration_record import ExplorationRecord
from pipelines.observe.decisions import RunningPlan, TaskManagers
from pipelines.observe.observation import Observed, job_file_text
from pipelines.planning.placing import tuned_placement
from pipelines.progress import Progress
from pipelines.run import OBSERVED_SAMPLES, PipelineRun
from pipelines.stages.publish import say_published, stored_with_report
from pipelines.store.code_version import code_version
from pipelines.store.digests import digest, digest_bytes
from pipelines.store.workspace import Workspace

TESTBED: Final = "running"
FILES: Final = "observed-jobs"
USED: Final = frozenset({"rate", "flink", "cluster", "risk", "headroom", "seed"})
"""Parameters of a plan that a plan from a running job takes, too."""


@dataclass(frozen=True)
class RunningRequest:
    """What is asked for."""

    rate: float
    """Target, records/s at the sources together."""
    cluster: str | None = None
    """Cluster to plan for, by name or path; None: more of the TaskManagers that run the job."""
    risk: float | None = None
    headroom: float | None = None
    seed: int = 0


def plan_running(
    rest: FlinkRest, observed: Observed, asked: RunningRequest, workspace: Workspace, progress: Progress
) -> Plan:
    """Plan an observed job for a rate, and store the plan. Nothing is changed on the cluster.

    Raises:
        InvalidInput: the job runs as one vertex; its TaskManagers differ, and no cluster is named.
        Infeasible: no number of tasks takes the rate, or the cluster is too small.
        PinnedJob: the job is pinned to a version of its plan.
        SluiceError: too little was seen of it.
    """
    job = observed.as_job()
    if observed.job.capacity is None:
        raise SluiceError(
            f"how far job {observed.job.job!r} would go is unknown, so it cannot be planned: "
            f"{'; '.join(observed.job.remarks) or 'no records came'}; observe it while records come, or measure it on a testbed"
        )
    task_managers = TaskManagers.of(rest, observed.job.id)
    cluster = task_managers.offer() if asked.cluster is None else load_cluster_or_offer(asked.cluster)
    known = RunningPlan(
        observed=observed,
        job=job,
        capacity=observed.job.capacity,
        task_managers=task_managers,
        run=f"observed-{datetime.now(UTC):%Y%m%dT%H%M%SZ}",
        samples_digest=digest_bytes(workspace.read_bytes(observed.samples_key)),
    )
    sizing = known.sized(asked.rate, asked.risk, asked.headroom)
    operators = known.operators(sizing.planned_rate)
    scaling = scale(operators, sizing, asked.rate, BIDS2)
    workers = PlannedWorkers.of(cluster, sizing, scaling, asked.rate)
    if asked.cluster is None:
        workers = replace(workers, cluster=task_managers.named(workers.cluster))
    decisions = Decisions(sizing, scaling, tuned_placement(scaling, asked.rate, workers.cluster), workers)
    run = _stored_request(known, asked, workspace, progress)
    observation = known.observation()
    placement = decisions.placement.tuning.placement
    bound_by = plan_bound(job, workers.cluster, asked.rate, scaling, placement, (observation,), ())
    content = assemble(job, asked.rate, decisions, _lineage(known, asked, decisions, cluster), bound_by)
    exploration = ExplorationRecord(
        job=job.name,
        testbed=TESTBED,
        slots_per_worker=task_managers.slots,
        observations=(observation,),
        steps=recorded_steps([(observation.budget, observation.mst)]),
        stopped_because="the job was observed as it runs",
    )
    plan, _ = stored_with_report(workspace, content, run.job, decisions, exploration)
    say_published(progress, plan, decisions)
    return plan


def _stored_request(known: RunningPlan, asked: RunningRequest, workspace: Workspace, progress: Progress) -> PipelineRun:
    """Store the request, the job's file, by which applying the plan finds what Flink calls each operator, and the samples, with
    which later ones are compared."""
    key = f"{FILES}/{known.job.name}/{known.run}.yaml"
    workspace.write_bytes(key, job_file_text(known.job).encode())
    request = PlanRequest(
        job=str(workspace.local_folder(FILES, known.job.name) / f"{known.run}.yaml"),
        rate=asked.rate,
        testbed=TESTBED,
        risk=asked.risk,
        headroom=asked.headroom,
        seed=asked.seed,
        run=known.run,
    )
    run = PipelineRun(request, workspace, progress)
    run.start()
    workspace.write_bytes(run.key(OBSERVED_SAMPLES), workspace.read_bytes(known.observed.samples_key))
    return run


def _lineage(
    known: RunningPlan, asked: RunningRequest, decisions: Decisions, cluster: Cluster | WorkerOffer
) -> Lineage:
    return Lineage(
        run=known.run,
        trigger="plan",
        testbed=TESTBED,
        model="observed",
        policy=decisions.scaling.policy,
        code_version=code_version(),
        seed=asked.seed,
        digests={
            "cluster": digest(cluster),
            "job": digest(known.job),
            "observed": digest(known.observed.job),
            "samples": known.samples_digest,
            "sizing": digest(decisions.sizing),
            "scaling": digest(decisions.scaling),
            "placement": digest(decisions.placement),
        },
    )
