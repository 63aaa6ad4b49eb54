"""The operator's own unit tests come out: every vector of tests/data/flink_autoscaler."""

import json
import math
import re
from pathlib import Path

import numpy as np
import pytest

from models.scaling.flink.alignment import align
from models.scaling.flink.memory_tuning import MIB, Channels, MemoryUse, TunedMemory, tune
from models.scaling.flink.metrics import thresholds
from models.scaling.flink.policy import FlinkAutoscaler
from models.scaling.flink.quantities import memory_size
from models.scaling.flink.scaling_history import PastScaling, ScalingHistory
from models.scaling.flink.settings import AdjustMode, AlignmentMode, FlinkSettings
from models.scaling.flink.vertex import Bounds, parallelism, scaling_factors
from models.scaling.policy import Facts, Rescaled

VECTORS = json.loads((Path(__file__).parents[3] / "data/flink_autoscaler/vectors.json").read_text())
NO_LIMIT = 2147483647
LEGACY_EVENLY = FlinkSettings.model_validate({"scaling.key-group.partitions.adjust.mode": "EVENLY_SPREAD"})
LEGACY_MAXIMIZE = FlinkSettings.model_validate({"scaling.key-group.partitions.adjust.mode": "MAXIMIZE_UTILISATION"})


def cases(*names: str) -> pytest.MarkDecorator:
    """All vectors whose name begins with one of these."""
    chosen = [v for v in VECTORS if v["name"].startswith(names)]
    assert chosen
    ids = [f"{v['name']}-{i}" for i, v in enumerate(chosen)]
    return pytest.mark.parametrize("vector", chosen, ids=ids)


def test_every_vector_has_a_test():
    covered = (
        "JobVertexScalerTest",
        "testParallelismComputation",
        "legacy",
        "testNumPartitionsAdjustment",
        "AlignmentModeTest",
        "observed scalability",
        "ScalingMetricEvaluatorTest",
        "testMaxRecommended",
        "testIneffective",
        "MemoryTuningTest",
    )
    assert len(VECTORS) == 29
    assert all(vector["name"].startswith(covered) for vector in VECTORS)


@cases("JobVertexScalerTest")
def test_parallelism_from_rates(vector, two_operators):
    given = vector["inputs"]
    policy = FlinkAutoscaler(
        FlinkSettings.model_validate(
            {
                "utilization.target": given["util"],
                "scale-down.max-factor": given["down"],
                "scale-up.max-factor": given["up"],
                "catch-up.duration": given["catchup"],
            }
        )
    )
    rates = two_operators(
        given["target_rate"],
        parallelism=given["current"],
        true_rate=given["tpr"],
        key_groups=720 if given["keyed"] else None,
    )
    assert policy.decide(rates).parallelism == {"work": vector["expected"]}


def settings_of(name: str) -> FlinkSettings:
    return LEGACY_MAXIMIZE if "MAXIMIZE" in name else LEGACY_EVENLY


def tasks(current: int, factor: float, bounds: Bounds, settings: FlinkSettings) -> int:
    (of_one,) = parallelism(np.array([current]), np.array([float(factor)]), bounds, settings.alignment)
    return of_one


@cases("testParallelismComputation", "legacy MAXIMIZE", "testNumPartitionsAdjustment")
def test_parallelism_from_a_factor(vector):
    given = vector["inputs"]
    shares = None if "no keyBy" in vector["name"] else given.get("source_partitions", given["max_parallelism"])
    upper = min(given["max_parallelism"], given.get("upper", NO_LIMIT))
    bounds = Bounds(np.array([given.get("lower", 1)]), np.array([upper]), [shares])
    assert tasks(given["current"], given["factor"], bounds, settings_of(vector["name"])) == vector["expected"]


@cases("AlignmentModeTest")
def test_alignment(vector):
    given, words = vector["inputs"], vector["name"].split()
    modes = {
        "BALANCED": AlignmentMode.BALANCED,
        "EVENLY": AlignmentMode.EVENLY_SPREAD,
        "legacy": AdjustMode.EVENLY_SPREAD,
    }
    upper = min(given["max_parallelism"], given.get("upper", NO_LIMIT))
    shares = given.get("source_partitions", given["max_parallelism"])
    assert align(modes[words[1]], given["current"], given["target"], shares, 1, upper) == vector["expected"]


@cases("observed scalability")
def test_observed_scalability(vector):
    given = vector["inputs"]
    settings = FlinkSettings.model_validate(
        {"utilization.target": given["util"], "catch-up.duration": 0, "observed-scalability.enabled": True}
    )
    history = ScalingHistory(settings)
    for i, (before, rate) in enumerate(given["history"]):
        history.add("work", PastScaling(float(i), before, before, rate, rate))
    wanted, true_rate = np.array([given["target_rate"] / given["util"]]), np.array([float(given["tpr"])])
    (factor,) = scaling_factors(wanted, true_rate, history.scalability(["work"], 10.0), settings)
    unlimited = Bounds(np.array([1]), np.array([NO_LIMIT]), [None])
    assert tasks(given["current"], factor, unlimited, settings) == vector["expected"]


@cases("ScalingMetricEvaluatorTest")
def test_thresholds(vector):
    given, expected = vector["inputs"], vector["expected"]
    up, down = thresholds(
        given["target_rate"],
        given["catch_up_rate"],
        (given["util_min"], given["util_max"]),
        given["restart_s"],
        given["catch_up_s"],
        given["processing_backlog"],
    )
    assert (up, down) == (expected["scale_up_below"], float(expected["scale_down_above"]))


AT_ONCE = {"utilization.target": 1.0, "catch-up.duration": 0, "stabilization.interval": 0, "metrics.window": 60}
"""No room for anything: each call decides by its own metrics."""


@cases("testMaxRecommended")
def test_a_scale_down_waits_and_takes_the_most_that_was_wanted(vector, two_operators):
    policy = FlinkAutoscaler(FlinkSettings.model_validate(AT_ONCE))
    got = []
    for minutes, target in vector["inputs"]:
        rates = two_operators(target, parallelism=100, true_rate=1000)
        deploy = policy.observe(Facts(60.0 * (minutes + 1), 60.0, rates)).deploy
        got.append(deploy.parallelism["work"] if deploy else 100)
    assert got == vector["expected"]


DETECTION_OFF = 7
"""The step of the vector that the operator takes with the detection switched off."""


@cases("testIneffective")
def test_ineffective_scale_ups_block_further_ones(vector, two_operators):
    steps = [tuple(map(float, step)) for step in re.findall(r"\((\d+),(\d+),(\d+)\)->(\d+)", vector["inputs"])]
    assert len(steps) == 8
    settings = AT_ONCE | {"scale-down.interval": 0}
    detecting = FlinkAutoscaler(
        FlinkSettings.model_validate(settings | {"scaling.effectiveness.detection.enabled": True})
    )
    indifferent = FlinkAutoscaler(FlinkSettings.model_validate(settings))
    last: Rescaled | None = None
    for i, (current, target, true_rate, expected) in enumerate(steps, start=1):
        rates = two_operators(target, parallelism=int(current), true_rate=true_rate, key_groups=720)
        facts = Facts(1000.0 * i, 60.0, rates, last)
        deploys = [policy.observe(facts).deploy for policy in (detecting, indifferent)]
        deploy = deploys[1 if i == DETECTION_OFF else 0]
        assert (deploy.parallelism["work"] if deploy else int(current)) == expected, f"step {i}"
        if deploys[0] is not None:
            last = Rescaled(facts.time_s + 100, 40.0, 0.0)


BUDGET = {"taskmanager.memory.process.size": "30 gb", "taskmanager.numberOfTaskSlots": 5}


def tuned(managed_mb: float, options: dict[str, bool]) -> TunedMemory:
    use = MemoryUse(5096 * MIB, 100 * MIB, int(managed_mb * MIB))
    settings = FlinkSettings.model_validate(BUDGET | options)
    return tune(use, [Channels("a", "b")], {"a": 50, "b": 50}, {"a": 25, "b": 10}, 50, settings)


@cases("MemoryTuningTest")
def test_memory_tuning(vector):
    expected = vector["expected"]
    compensation, maximize = "memory.tuning.scale-down-compensation.enabled", "memory.tuning.maximize-managed-memory"
    plain = tuned(10000, {compensation: False})
    assert plain.options() == {
        "taskmanager.memory.process.size": expected["process.size"],
        "taskmanager.memory.framework.heap.size": "0 bytes",
        "taskmanager.memory.managed.fraction": str(expected["managed.fraction"]),
        "taskmanager.memory.network.min": expected["network"],
        "taskmanager.memory.network.max": expected["network"],
        "taskmanager.memory.jvm-metaspace.size": expected["metaspace"],
        "taskmanager.memory.jvm-overhead.fraction": str(expected["jvm-overhead.fraction"]),
    }
    got = {
        "maximize-managed": tuned(10000, {compensation: False, maximize: True}),
        "managed=0": tuned(0, {compensation: False, maximize: True}),
        "managed=0+scale-down-compensation": tuned(0, {compensation: True, maximize: True}),
    }
    for name, memory in got.items():
        said = {
            "managed.fraction": memory.managed_fraction,
            "process.size": memory_size(memory.process),
            "jvm-overhead.fraction": memory.overhead_fraction,
        }
        assert {key: said[key] for key in expected[name]} == expected[name], name


def test_metaspace_goes_before_heap_when_the_heap_would_take_all():
    # The same test of the operator: the metaspace gets its 256 MiB + 20 %, the heap what is left of 30 GiB.
    settings = FlinkSettings.model_validate(BUDGET)
    memory = tune(
        MemoryUse(30812254720, 268435456, 0), [Channels("a", "b")], {"a": 50, "b": 50}, {"a": 25, "b": 10}, 50, settings
    )
    assert (memory.metaspace, memory_size(memory.process)) == (322122547, "30 gb")
    assert (memory.managed, memory.overhead_fraction) == (0, 0.034)
    assert math.isclose(memory.heap, 30 * 1024 * MIB - memory.overhead - 128 * MIB - memory.network - memory.metaspace)
