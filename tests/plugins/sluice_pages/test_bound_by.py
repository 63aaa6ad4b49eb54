"""The page of a plan says what bounds the job."""

from pathlib import Path

from models.capacity.diagnosis.bound_by import BoundBy, RemedyEffect
from models.plan.content import Plan
from pipelines.pages.detail import PlanDetail
from sluice_pages.pages import _templates

DATA = Path(__file__).parents[2] / "data" / "plans"


def rendered(plan: Plan) -> str:
    detail = PlanDetail(plan=plan, workers=(), uri="u", newest=1, applied=(), pictures_of=None, mlflow=None, faults=())
    shown = {"address": lambda name, **of: name, "static": str, "airflow": "", "detail": detail, "made_by": None}
    return _templates().get_template("plan.html.j2").render(**shown, approvals=())


def test_a_plan_says_what_bounds_the_job_and_one_of_an_earlier_version_does_not() -> None:
    plan = Plan.model_validate_json((DATA / "nexmark-q5-v1.json").read_text())
    assert "Bound by" not in rendered(plan)
    effect = RemedyEffect(change="even shares", rate_now=1000, rate_then=2500, then_bound_by="sink")
    bound = BoundBy(vertex="join", cause="hot key", sentence="<full>", remedy="another key", effect=effect)
    page = rendered(plan.model_copy(update={"bound_by": bound}))
    assert "<h2>Bound by join, hot key</h2>" in page
    assert "<p>&lt;full&gt;.</p>" in page
    assert (
        "To lift it: another key; even shares: 1,000 -&gt; up to 2,500 records/s (+150%), then bound by sink." in page
    )
