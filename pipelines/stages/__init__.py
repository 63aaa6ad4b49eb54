"""The stages in the order in which a plan is made, one file each. The command line and the DAGs run the same functions."""

from collections.abc import Callable
from pkgutil import resolve_name
from typing import Final

from models.errors import Infeasible, InvalidInput
from pipelines.progress import Progress
from pipelines.run import REQUEST_FILE, PipelineRun

Stage = Callable[[PipelineRun], str]
"""Executes one step of a run unless its output exists, and returns the URI of the output."""

STAGES: Final = {
    "profile": "pipelines.stages.profile:profile",
    "explore": "pipelines.stages.explore:explore",
    "check": "pipelines.stages.check:check",
    "features": "pipelines.stages.features:features",
    "check_features": "pipelines.stages.check:check_features",
    "twin": "pipelines.stages.twin:twin",
    "select": "pipelines.stages.select:select",
    "review": "pipelines.stages.review:review",
    "size": "pipelines.stages.size:size",
    "scale": "pipelines.stages.scale:scale",
    "place": "pipelines.stages.place:place",
    "publish": "pipelines.stages.publish:publish",
}
"""The functions of the stages, imported by name: importing all takes seconds, and a task of a DAG runs one."""
MEASURE: Final = ("profile", "explore")
"""The first stages, which need a testbed."""
NEED_SAMPLES: Final = frozenset({"profile", "features", "check_features", "twin"})
"""Stages that are skipped on the recorded testbed, since published measurements come without samples."""
DECIDE: Final = frozenset({"size", "scale", "place"})


def run_stage(name: str, run: PipelineRun) -> str:
    """Run one stage; returns the URI of its output, or of the request where the stage has nothing to do.

    If several processes make the same run, one at a time runs a stage; the others then find its output.
    """
    if run.request.testbed == "recorded" and name in NEED_SAMPLES:
        run.progress.say(f"{name}: nothing to do, since recorded measurements come without samples")
        return run.workspace.uri(run.key("request.json"))
    stage: Stage = resolve_name(STAGES[name])
    try:
        with run.workspace.lock(run.key("lock"), lambda holder: run.progress.say(f"{name}: {holder}")):
            return stage(run)
    except Infeasible as error:
        if name not in DECIDE or run.request.measurements is not None:
            raise
        raise Infeasible(
            f"{error}; the measurements are stored: repeat with --run {run.run_id} and another rate to plan from them"
        ) from error


def run_stage_at(name: str, request_uri: str, progress: Progress) -> str:
    """Run one stage of the run whose request has this URI; returns the URI of its output.

    Raises:
        InvalidInput: the job's or the cluster's file has changed since the run began.
    """
    run = PipelineRun.at(request_uri, progress)
    if not request_uri.endswith(f"/{run.key(REQUEST_FILE)}"):
        raise InvalidInput(
            f"all stages of a run must see the same job and cluster, but the file of {run.request.job!r} or of "
            f"{run.request.cluster!r} has changed since the run began; run the DAG again"
        )
    return run_stage(name, run)


def run_all(run: PipelineRun) -> str:
    """Run every stage in order; returns the URI of the plan."""
    from pipelines.measuring.testbeds import kept_open

    if run.request.testbed == "running":
        raise InvalidInput("a running job is not measured; plan it with `sluice plan --from-running --flink URL`")
    run.start()
    with kept_open():
        for name in MEASURE:
            run_stage(name, run)
    uri = ""
    for name in STAGES:
        if name not in MEASURE:
            uri = run_stage(name, run)
    return uri
