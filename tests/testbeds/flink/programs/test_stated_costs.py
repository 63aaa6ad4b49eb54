"""What a job of stated costs must not have to run on Flink."""

import pytest

from models.errors import InvalidInput
from pipelines.inputs.catalogue import load_job
from testbeds.flink.programs.stated_costs import Payment, dataflow_program


def test_an_operator_that_waits_outside_the_job_is_refused() -> None:
    job = load_job("wordcount")
    source, flatmap, count = job.operators
    cost = flatmap.cost.model_copy(update={"external_wait_s": 0.002})
    waits = job.model_copy(update={"operators": (source, flatmap.model_copy(update={"cost": cost}), count)})
    tasks = {o.name: 1 for o in job.operators}
    with pytest.raises(InvalidInput, match=r"'flatmap' of job 'wordcount' has 'external_wait_s' 0\.002; remove it"):
        dataflow_program(waits, tasks, "localhost:1", {}, payment=Payment.SHARED)
    assert dataflow_program(job, tasks, "localhost:1", {}, payment=Payment.SHARED)
