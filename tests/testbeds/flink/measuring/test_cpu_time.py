import numpy as np
import pytest

from testbeds.flink.measuring.cpu_time import shared_out


def test_cpu_time_goes_to_tasks_by_how_busy_they_were() -> None:
    workers = {("a", 0): "tm-1", ("a", 1): "tm-2", ("b", 0): "tm-1"}
    busy = {("a", 0): np.array([3.0, 1.0]), ("b", 0): np.array([1.0, 1.0]), ("a", 1): np.array([0.0, 2.0])}
    shared = shared_out({"tm-1": np.array([2.0, 5.0]), "tm-2": np.array([0.1, 1.5])}, busy, workers)
    assert shared["a", 0].tolist() == pytest.approx([1.5, 1.0])
    assert shared["b", 0].tolist() == pytest.approx([0.5, 1.0])
    assert shared["a", 1].tolist() == pytest.approx([0.0, 1.5])


def test_what_interpolation_leaves_below_0_is_none() -> None:
    workers = {("a", 0): "tm", ("b", 0): "tm"}
    busy = {("a", 0): np.array([2.0, 1.0]), ("b", 0): np.array([-0.001, 1.0])}
    shared = shared_out({"tm": np.array([1.0, -0.01])}, busy, workers)
    assert shared["a", 0].tolist() == [1.0, 0.0]
    assert shared["b", 0].tolist() == [0.0, 0.0]
