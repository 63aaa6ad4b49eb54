"""Stage `plan`: everything decided so far becomes the content of a plan."""

from models.cluster import Cluster
from models.plan import Lineage, OperatorPlan, PlanContent
from pipelines.digests import digest
from pipelines.exploration_record import EXPLORATION_FILE, ExplorationRecord
from pipelines.run import PipelineRun
from pipelines.tuning import TunedScaling
from pipelines.version import code_version

PLACEMENT_POLICY = "caps"
DIMENSION_NAMES = {"cpu": "CPU", "io": "state access", "net": "network"}


def plan(run: PipelineRun) -> str:
    """Put together what is to be deployed, and why; returns the URI of `plan.json`."""
    key = run.key("plan.json")
    tuned = run.output("thresholds.json", TunedScaling)
    inputs = {"thresholds": digest(tuned), "cluster": digest(run.cluster)}
    content = run.workspace.once(key, inputs, PlanContent, lambda: plan_content(run, tuned, trigger="plan"))
    run.progress.say(f"plan: {content.total_slots} tasks on {len(content.placement)} workers")
    return run.workspace.uri(key)


def plan_content(run: PipelineRun, tuned: TunedScaling, trigger: str) -> PlanContent:
    """The content of a plan that deploys a tuned scaling, and where everything in it comes from."""
    scaling, tuning = tuned.scaling, tuned.tuning
    slots = {w.slots for w in run.cluster.workers}
    return PlanContent(
        job=run.job.name,
        target_rate=scaling.target_rate,
        source_rates={s.name: s.rate_share * scaling.target_rate for s in run.job.sources},
        headroom=scaling.headroom,
        task_slots=scaling.budget.task_slots,
        total_slots=scaling.dataflow.tasks,
        memory_mb=scaling.budget.memory_mb,
        slots_per_worker=slots.pop() if len(slots) == 1 else None,
        operators=tuple(_operator(tuned, name) for name in run.job.order),
        placement=tuning.placement,
        cost=tuning.cost,
        thresholds=tuning.thresholds,
        placement_policy=PLACEMENT_POLICY,
        placement_status=tuning.status,
        predicted_mst=scaling.predicted_mst,
        reasons=(
            *scaling.reasons,
            *memory_reason(run.output(EXPLORATION_FILE, ExplorationRecord).slots_per_worker, run.cluster),
            tuned.origin,
            *_placement_reason(tuned),
        ),
        lineage=_lineage(run, tuned, trigger),
    )


def memory_reason(measured_slots: int, cluster: Cluster) -> tuple[str, ...]:
    """What the plan's memory means where the cluster's workers have other numbers of slots than those measured."""
    slots = {w.slots for w in cluster.workers}
    if slots == {measured_slots}:
        return ()
    most = max(slots)
    return (
        f"memory is that of a TaskManager of {measured_slots} slots, as measured; one of {most} slots needs "
        f"{most / measured_slots:.3g} times as much for the same share of each",
    )


def _operator(tuned: TunedScaling, name: str) -> OperatorPlan:
    scaling = tuned.scaling
    tasks, records_in = scaling.parallelism[name], scaling.records_in_per_s[name]
    return OperatorPlan(
        name=name,
        parallelism=tasks,
        managed_memory_mb=scaling.managed_memory_mb[name],
        records_in_per_s=records_in,
        predicted_busyness=min(1.0, records_in / (tasks * scaling.true_rate_per_task[name])),
        reason=scaling.operator_reasons[name],
    )


def _placement_reason(tuned: TunedScaling) -> tuple[str, ...]:
    tuning = tuned.tuning
    single, joint = tuning.single, tuning.thresholds
    return (
        f"alone, CPU, state access and network could be balanced to {single.cpu:.4f}, {single.io:.4f} and "
        f"{single.net:.4f} (0 is even, 1 the worst); together to {joint.cpu:.4f}, {joint.io:.4f} and {joint.net:.4f}",
        *(
            f"{DIMENSION_NAMES[d]} is not limited (threshold 1): no placement loads a worker by more than {worst:.1%} of "
            "its capacity there, so it cannot become a bottleneck"
            for d, worst in tuning.left_out.items()
        ),
    )


def _lineage(run: PipelineRun, tuned: TunedScaling, trigger: str) -> Lineage:
    return Lineage(
        run=run.run_id,
        trigger=trigger,
        testbed=run.request.testbed,
        model=tuned.model,
        model_uri=tuned.model_uri,
        policy=tuned.scaling.policy,
        code_version=code_version(),
        seed=run.request.seed,
        digests={
            "job": digest(run.job),
            "cluster": digest(run.cluster),
            "request": digest(run.request),
            "exploration": digest(run.output(EXPLORATION_FILE, ExplorationRecord)),
            "scaling": digest(tuned.scaling),
        },
    )
