"""The page as a browser gets it."""

import re
from dataclasses import replace
from html.parser import HTMLParser

import pytest
from plotly.graph_objects import Figure

from models.capacity.diagnosis.bound_by import BoundBy
from models.plan.content import Plan
from pipelines.report import ReportSubject, figures, render
from pipelines.report.placement import placement_figure, placement_info


class _Links(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []
        self.ids: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found += [value for name, value in attrs if name in {"src", "href"} and value]
        self.ids |= {value for name, value in attrs if name == "id" and value}


@pytest.fixture
def html(subject: ReportSubject) -> str:
    return render(subject.plan, figures(subject))


def test_the_page_loads_nothing_from_elsewhere(html: str) -> None:
    parser = _Links()
    parser.feed(html)
    assert parser.found == []
    assert "@import" not in html.split("<script>")[0]


def test_the_page_says_what_bounds_the_job(subject: ReportSubject, html: str) -> None:
    assert "Bound by" not in html
    bound = BoundBy(
        vertex="join",
        cause="waiting",
        sentence="windows < fire",
        remedy="larger buffers",
        no_effect_because="unmeasured",
    )
    page = render(subject.plan.model_copy(update={"bound_by": bound}), {name: Figure() for name in figures(subject)})
    assert "<h2>Bound by join, waiting</h2>" in page
    assert "Windows &lt; fire." in page
    assert "To lift it: larger buffers; effect not computed: unmeasured." in page


def test_every_figure_is_on_the_page(subject: ReportSubject, html: str) -> None:
    parser = _Links()
    parser.feed(html)
    assert parser.ids >= figures(subject).keys()


def test_the_placement_stands_beside_the_one_before(subject: ReportSubject, previous: Plan) -> None:
    alone = figures(subject)["placement"]
    both = figures(replace(subject, previous=previous))["placement"]
    assert [sum(trace.type == "heatmap" for trace in figure.data) for figure in (alone, both)] == [1, 2]
    assert [note.text for note in both.layout.annotations if "slots" in note.text] == [
        "tasks in slots: version 1, at the new rate",
        "tasks in slots: version 1",
    ]


def test_workers_without_tasks_are_left_out_and_counted(subject: ReportSubject) -> None:
    info = placement_info(subject)
    idle = replace(info.workers[0], name="tm-0", slots=(None, None), started=(False, False))
    figure = placement_figure(replace(info, workers=(idle, *info.workers)))
    assert list(figure.data[0].y) == ["tm-1", "tm-2"]
    assert figure.layout.title.text == "Placement; workers without tasks, left out: 1"
    assert placement_figure(info).layout.title.text == "Placement"


def test_words_from_elsewhere_are_escaped(html: str) -> None:
    assert "made &lt;for&gt; tests" in html


def test_the_operators_table_states_the_plan(html: str) -> None:
    body = re.sub(r"<script.*?</script>", "", html, flags=re.DOTALL)
    row = re.search(r"<tr><td>map</td>.*?</tr>", body)
    assert row is not None
    assert re.findall(r">([^<>]+)</td>", row[0]) == ["map", "3", "none", "200", "66.7%", "made for tests"]
