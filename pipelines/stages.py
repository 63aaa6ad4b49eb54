"""The stages in the order a plan is made. The command line and the DAGs run these same functions."""

from collections.abc import Callable
from typing import Final

from pipelines.check import check, check_features
from pipelines.explore import explore
from pipelines.features import features
from pipelines.planning import plan
from pipelines.profile import profile
from pipelines.publish import publish
from pipelines.review import review
from pipelines.run import PipelineRun
from pipelines.selection import select
from pipelines.testbeds import kept_open
from pipelines.tuning import tune

Stage = Callable[[PipelineRun], str]
"""Does one step of a run, or finds that it was done, and returns the URI of what it left."""

STAGES: Final[dict[str, Stage]] = {
    "profile": profile,
    "explore": explore,
    "check": check,
    "features": features,
    "check_features": check_features,
    "select": select,
    "review": review,
    "tune": tune,
    "plan": plan,
    "publish": publish,
}
MEASURE: Final = ("profile", "explore")
"""The first ones: they need a testbed."""
NEED_SAMPLES: Final = frozenset({"profile", "check", "features", "check_features"})
"""Published measurements come without samples: with the recorded testbed there is nothing for these to do."""


def run_stage(name: str, run: PipelineRun) -> str:
    """Run one stage; returns the URI of its output, or of the request where the stage has nothing to do."""
    if run.request.testbed == "recorded" and name in NEED_SAMPLES:
        run.progress.say(f"{name}: nothing to do, since recorded measurements come without samples")
        return run.workspace.uri(run.key("request.json"))
    return STAGES[name](run)


def run_all(run: PipelineRun) -> str:
    """Run every stage in order; returns the URI of the plan."""
    run.start()
    with kept_open():
        for name in MEASURE:
            run_stage(name, run)
    uri = ""
    for name in STAGES:
        if name not in MEASURE:
            uri = run_stage(name, run)
    return uri
