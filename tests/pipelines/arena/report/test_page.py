"""The page as a browser gets it."""

import json
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

from models.scaling.policies import POLICIES
from pipelines.arena.evaluation import Evaluation
from pipelines.arena.replays.cell import RescaleRecord
from pipelines.arena.report.curves import curves, policy_colours
from pipelines.arena.report.page import render, sections, write_report
from pipelines.arena.report.time_figure import ROWS, time_figure
from pipelines.arena.request import EvaluationRequest
from pipelines.store.workspace import Workspace


class _Page(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.links: list[str] = []
        self.places: list[str] = []
        self.switches: list[str] = []
        self.anchors: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        self.links += [given[name] for name in ("src", "href") if name in given]
        self.places += [given["data-figure"]] if "data-figure" in given else []
        self.switches += [given["data-policy"]] if "data-policy" in given else []
        self.anchors |= {given["id"]} if "id" in given else set()


@pytest.fixture(scope="module")
def html(asked: EvaluationRequest, evaluated: Evaluation, kept_in: Path) -> str:
    return render(asked, evaluated, Workspace(kept_in))


@pytest.fixture(scope="module")
def page(html: str) -> _Page:
    parser = _Page()
    parser.feed(html)
    return parser


def _data(html: str, name: str) -> dict:
    found = re.search(rf'<script type="application/json" id="{name}">(.*?)</script>', html, flags=re.DOTALL)
    assert found is not None
    return json.loads(found[1])


def test_the_page_loads_nothing_from_elsewhere(page: _Page) -> None:
    assert page.links == ["#s0", "#s1"] and {"s0", "s1"} <= page.anchors


def test_each_job_and_workload_has_its_figures_and_each_policy_one_switch(page: _Page, html: str) -> None:
    assert page.places == ["frontier-0", "frontier-1", "time-0", "time-1"]
    assert page.switches == ["ds2", "hpa-cpu"]
    for place in page.places:
        switched = {trace["meta"] for trace in _data(html, place)["data"] if "meta" in trace}
        assert switched == {"ds2", "hpa-cpu"}, place


def test_a_policy_has_one_colour_everywhere_and_no_two_share_it(html: str) -> None:
    colours = policy_colours(POLICIES)
    assert len(set(colours.values())) == len(POLICIES)
    assert policy_colours(["sluice"]) == {"sluice": colours["sluice"]}
    for place in ("frontier-0", "time-0", "time-1"):
        for trace in (t for t in _data(html, place)["data"] if "meta" in t):
            drawn = trace["marker"] if trace["mode"] == "markers" else trace["line"]
            assert drawn["color"] == colours[trace["meta"]]


def test_curves_are_those_of_the_first_seed(asked: EvaluationRequest, evaluated: Evaluation, kept_in: Path) -> None:
    workspace = Workspace(kept_in)
    section = sections(asked, evaluated, workspace)[1]
    (one,) = [
        one
        for one in evaluated.finished
        if (one.cell.workload.name, one.cell.policy, one.cell.seed) == ("random", "hpa-cpu", 1066)
    ]
    assert section.name == "nexmark-q1, random, in-place"
    assert [r.policy for r in section.replays] == ["ds2", "hpa-cpu"]
    assert section.replays[1].tasks.tolist() == one.trace(workspace)["tasks"].to_pylist()


def test_rescales_are_marked_where_they_were_decided_with_the_reason(evaluated: Evaluation, kept_in: Path) -> None:
    trace = evaluated.finished[0].trace(Workspace(kept_in))
    rescale = RescaleRecord(
        time_s=90, downtime_s=31, state_mb=5, tasks=7, parallelism={"map": 7}, memory_mb={}, reason="map is too busy"
    )
    replays = [curves("ds2", trace, (rescale,)), curves("flink", trace, ())]
    figure = time_figure(replays, 60.0)
    assert len(figure.data) == 1 + len(replays) * (len(ROWS) + 1)
    marks = {t.meta: t for t in figure.data if t.mode == "markers"}
    assert (list(marks["ds2"].x), list(marks["ds2"].y)) == ([1.5], [7])
    shown = marks["ds2"].hovertext[0].replace("<br>", " ")
    assert shown == "<b>ds2</b> at 1.5 min: 7 tasks, down for 31 s. map is too busy"
    assert list(marks["flink"].x) == []


def test_the_table_names_the_winner_and_why(html: str, evaluated: Evaluation) -> None:
    body = re.sub(r"<script.*?</script>", "", html, flags=re.DOTALL)
    for ranking in evaluated.rankings:
        assert body.count(f"<strong>{ranking.reason}</strong>") == 1
        best = ranking.winner
        row = re.search(rf'<tr class="winner.*?{best.policy}.*?</tr>', body)
        assert row is not None
    assert body.count('<tr class="winner') == 2
    assert body.index(evaluated.verdicts["in-place"].sentence) < body.index("frontier-0") < body.index("time-0")
    assert "means of\n2 seeds from 1066" in body
    assert f"{evaluated.rankings[0].winner.task_hours:,.1f}</td>" in body


def test_the_report_lies_beside_the_results(asked: EvaluationRequest, evaluated: Evaluation, kept_in: Path) -> None:
    workspace = Workspace(kept_in)
    key = write_report(asked, evaluated, workspace)
    assert key == evaluated.results_key.replace("results.parquet", "report.html")
    assert workspace.read_bytes(key).startswith(b"<!doctype html>")
