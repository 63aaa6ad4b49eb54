"""Whether a job can be decided about."""

from dataclasses import replace

import pytest

from autopilots.flight import Flight
from flink.steered import COUNT, SINK, SOURCE
from known_answers.counted import Doing, Vertex, job_counts
from models.scaling.control.limits import ControlLimits
from pipelines.control.fitness import unfit
from pipelines.control.sensing import Sight


def test_a_task_whose_bounded_input_was_read_at_once_is_not_waited_for() -> None:
    """It had run for a second when it finished, which the others have long done."""
    counts = job_counts([Vertex("files", [Doing(100, 100, 0.4)] * 2, is_source=True)], time_s=600.0)
    (files,) = counts.vertices
    short = replace(files.tasks[0], busy_s=0.5, backpressured_s=0.0, idle_s=0.5)
    limits = ControlLimits(settle_s=20.0)

    def held(task: object) -> object:
        vertices = (replace(files, tasks=(task, files.tasks[1])),)
        return unfit(Sight(600.0, replace(counts, vertices=vertices), names={files.id: "files"}), 600.0, limits)

    assert held(replace(short, runs=False, finished=True)) is None
    assert "has run for 1 s only" in str(held(short))


ENDED = "out has read all of its input, so that the rest of the job is measured from now on"
ENDING = "its sources have read all of their input, so that the job is about to end"


@pytest.mark.parametrize("policy", ["ds2", "sluice"])
@pytest.mark.parametrize(
    ("finished", "said", "last"),
    [({COUNT: 1}, set(), None), ({SINK: 1}, {ENDED}, None), ({SOURCE: 1}, {ENDING}, "restarting")],
    ids=["some tasks", "a vertex", "all sources"],
)
def test_an_autopilot_goes_on_where_a_part_of_the_job_has_read_its_bounded_input(
    flight: Flight, policy: str, finished: dict[str, int], said: set[str], last: str | None
) -> None:
    autopilot = flight.autopilot(policy=policy)
    flight.fly(autopilot, 60.0)
    flight.job.finished = finished
    stored = flight.fly(autopilot, 90.0)
    assert {one.reason for one in stored if one.held is not None} == said
    assert stored[-1].held == last
