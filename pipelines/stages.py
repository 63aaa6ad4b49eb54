"""The stages in the order a plan is made. The command line and the DAGs run these same functions."""

from collections.abc import Callable
from pkgutil import resolve_name
from typing import Final

from pipelines.run import PipelineRun

Stage = Callable[[PipelineRun], str]
"""Does one step of a run, or finds that it was done, and returns the URI of what it left."""

STAGES: Final = {
    "profile": "pipelines.profile:profile",
    "explore": "pipelines.explore:explore",
    "check": "pipelines.check:check",
    "features": "pipelines.features:features",
    "check_features": "pipelines.check:check_features",
    "select": "pipelines.selection:select",
    "review": "pipelines.review:review",
    "tune": "pipelines.tuning:tune",
    "plan": "pipelines.planning:plan",
    "publish": "pipelines.publish:publish",
}
"""Where the function of each is. All together import for seconds, and a task of a DAG runs one."""
MEASURE: Final = ("profile", "explore")
"""The first ones: they need a testbed."""
NEED_SAMPLES: Final = frozenset({"profile", "check", "features", "check_features"})
"""Published measurements come without samples: with the recorded testbed there is nothing for these to do."""


def run_stage(name: str, run: PipelineRun) -> str:
    """Run one stage; returns the URI of its output, or of the request where the stage has nothing to do."""
    if run.request.testbed == "recorded" and name in NEED_SAMPLES:
        run.progress.say(f"{name}: nothing to do, since recorded measurements come without samples")
        return run.workspace.uri(run.key("request.json"))
    stage: Stage = resolve_name(STAGES[name])
    return stage(run)


def run_all(run: PipelineRun) -> str:
    """Run every stage in order; returns the URI of the plan."""
    from pipelines.testbeds import kept_open

    run.start()
    with kept_open():
        for name in MEASURE:
            run_stage(name, run)
    uri = ""
    for name in STAGES:
        if name not in MEASURE:
            uri = run_stage(name, run)
    return uri
