"""Dimensions that cannot become a bottleneck are left out of the tuning."""

import numpy as np
import pytest

from models.cluster import Cluster
from models.dataflow import Dataflow
from models.errors import InvalidInput
from models.placement import place, tune
from models.placement.cost import as_array
from models.placement.problem import idle_dimensions


@pytest.fixture
def four_tasks(chain) -> Dataflow:
    """Two tasks of a send 1 each to two of b; every task needs 2 cores."""
    return chain(2, 2, cpu=[2.0, 2.0], io=[0.0, 0.0], net=[1.0, 0.0])


@pytest.fixture
def roomy(equal_workers) -> Cluster:
    """Three workers, each with a slot for every task, but with cores for two."""
    return equal_workers(3, 4, cores=4, io=100, net=1000)


def test_the_worst_worker_there_can_be(four_tasks, roomy):
    # All four tasks on a worker: 8 of 4 cores; both tasks of a: 2 of 1,000 over the network.
    assert idle_dimensions(four_tasks, roomy) == {"io": 0.0, "net": pytest.approx(0.002)}
    assert idle_dimensions(four_tasks, roomy, share=0.002) == {"io": 0.0}
    assert idle_dimensions(four_tasks, roomy, share=0.0) == {}


def test_where_no_capacity_is_stated_nothing_is_left_out(four_tasks, equal_workers):
    assert idle_dimensions(four_tasks, equal_workers(3, 4)) == {}
    assert idle_dimensions(four_tasks, equal_workers(3, 4, net=1000)) == {"net": pytest.approx(0.002)}


def test_of_workers_that_differ_the_worst_counts(four_tasks):
    workers = [{"name": "x", "slots": 4, "net": 1000}, {"name": "y", "slots": 1, "net": 2}, {"name": "z", "slots": 4}]
    # x could send 2 of 1,000, y with its one slot 1 of 2, and z is not limited.
    cluster = Cluster.model_validate({"workers": workers})
    assert idle_dimensions(four_tasks, cluster, share=0.6) == {"net": pytest.approx(0.5)}
    assert idle_dimensions(four_tasks, cluster, share=0.5) == {}


def test_all_dimensions_relaxed_alike_overload_a_worker(four_tasks, roomy):
    # Least CPU: two tasks on a worker, 1 of its capacity: (1 - 2/3) / (2 - 2/3) = 1/4. Least network: all on one worker, 0.
    # From the floor 0.01 the network needs a factor of 25 where a and b are in pairs (0.25, 0.25), so all on one worker
    # is the better compromise, and 4 is the factor: CPU 1 / 0.25.
    published = tune(four_tasks, roomy, idle_share=0.0)
    assert published.left_out == {}
    assert as_array(published.single) == pytest.approx([0.25, 0, 0])
    assert published.relaxation == pytest.approx(4)
    assert as_array(published.cost) == pytest.approx([1, 0, 0])


def test_a_dimension_that_cannot_be_short_is_left_out(four_tasks, roomy):
    tuning = tune(four_tasks, roomy)
    assert tuning.left_out == {"io": 0.0, "net": pytest.approx(0.002)}
    assert tuning.relaxation == pytest.approx(1)
    assert as_array(tuning.thresholds) == pytest.approx([0.25, 1, 1])
    # Within these the network still is as low as it can be: each a with a b, so that half of its output stays.
    assert as_array(tuning.cost) == pytest.approx([0.25, 0, 0.25])
    assert (tuning.status, tuning.gap, tuning.pareto_proved) == ("optimal", 0, True)
    result = place(four_tasks, roomy)
    assert (result.cost, result.thresholds, result.left_out) == (tuning.cost, tuning.thresholds, tuning.left_out)


def test_if_no_dimension_can_be_short_any_placement_is_accepted(four_tasks, equal_workers):
    tuning = tune(four_tasks, equal_workers(3, 4, cores=100, io=100, net=1000))
    assert list(tuning.left_out) == ["cpu", "io", "net"]
    assert as_array(tuning.thresholds).tolist() == [1, 1, 1]
    assert (tuning.relaxation, tuning.grid_relaxation, tuning.status) == (0, 1, "optimal")
    assert as_array(tuning.cost) == pytest.approx([0.25, 0, 0.25])


def test_a_dimension_that_could_bind_keeps_its_threshold(q2_scaled, equal_workers):
    dataflow, _ = q2_scaled(4, 4)
    published = tune(dataflow, equal_workers(4, 4))
    stated = tune(dataflow, equal_workers(4, 4, cores=5000, io=70_000, net=60))
    assert stated.left_out == {}
    assert as_array(stated.thresholds) == pytest.approx(as_array(published.thresholds))
    assert np.isclose(stated.relaxation, published.relaxation)


def test_a_share_outside_0_to_1_is_refused(four_tasks, roomy):
    with pytest.raises(InvalidInput, match=r"0 to 1, but got 1\.5"):
        tune(four_tasks, roomy, idle_share=1.5)


@pytest.mark.parametrize("policy", ["caps", "default", "evenly"])
def test_a_cluster_whose_memory_is_used_up_exactly_is_enough(chain, policy: str) -> None:
    """Two workers of 2048 MiB and five slots, and ten tasks of a fifth of it each, whose sum a float rounds up."""
    workers = Cluster.model_validate(
        {
            "name": "full",
            "description": "made up",
            "workers": [{"name": f"tm-{i}", "slots": 5, "memory_mb": 2048, "cores": 4} for i in range(2)],
        }
    )
    tasks = chain(2, 1, 4, 2, 1)
    full = tasks.model_copy(
        update={"operators": tuple(o.model_copy(update={"memory_mb": 2048 / 5}) for o in tasks.operators)}
    )
    assert sum(sum(on.values()) for on in place(full, workers, policy, seed=0).placement.values()) == 10
