"""The file of an observed job, where there is none to be made."""

import pytest

from known_answers.counted import Doing, Vertex, readings
from models.capacity.observed.observing import observe
from models.capacity.observed.surroundings import Surroundings
from models.errors import InvalidInput
from pipelines.observe.job_file import job_of


def test_a_job_that_runs_as_one_vertex_is_observed_but_has_no_file() -> None:
    """Its only task is always busy. There is no operator beside the source whose tasks could be planned."""
    chained = Vertex("source -> sink", [Doing(600, 0, busy=1.0, partitions=1)], is_source=True)
    seen = observe(readings(chained), Surroundings(name="whole", id="1", edges=()))
    assert seen.bound_by.cause == "source partitions"
    with pytest.raises(InvalidInput, match="job 'whole' runs as one vertex: Flink chained all of it"):
        job_of(seen, (), {"id-source -> sink": 1e-3})
