"""Instances that several placement tests look at."""

import json
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import pytest

from models.cluster import Cluster
from models.dataflow import Dataflow
from models.placement.problem import Problem

Q2_SCALED = json.loads((Path(__file__).parents[2] / "data" / "capsys" / "q2_scaled.json").read_text())


@pytest.fixture(scope="session")
def q2_scaled() -> Callable[..., tuple[Dataflow, Cluster]]:
    """CAPSys Q2-join scaled to workers x slots; by default as many tasks as slots."""

    def scaled(workers: int, slots: int, tasks: int | None = None) -> tuple[Dataflow, Cluster]:
        tasks = tasks or workers * slots
        operators = [dict(o) for o in Q2_SCALED["operators"]]
        for o in operators:
            o["parallelism"] = max(1, int(o.pop("base") / 21 * tasks))
        operators[-1]["parallelism"] = tasks - sum(o["parallelism"] for o in operators[:-1])
        dataflow = {"name": "q2-scaled", "operators": operators, "edges": Q2_SCALED["edges"]}
        return Dataflow.model_validate(dataflow), Cluster.model_validate({"count": workers, "slots": slots})

    return scaled


@pytest.fixture(scope="session")
def chain() -> Callable[..., Dataflow]:
    """Operators a, b, c, ... with the given parallelism, joined in a row by hash edges; loads are 1 unless given."""

    def build(*parallelism: int, **loads: list[float]) -> Dataflow:
        names = "abcdefgh"[: len(parallelism)]
        operators = [
            {
                "name": name,
                "parallelism": p,
                **{key: loads.get(key, [1.0] * len(names))[i] for key in ("cpu", "io", "net")},
                "memory_mb": loads.get("memory_mb", [0.0] * len(names))[i],
            }
            for i, (name, p) in enumerate(zip(names, parallelism, strict=True))
        ]
        edges = [{"from": a, "to": b, "partitioning": "hash"} for a, b in pairwise(names)]
        return Dataflow.model_validate({"operators": operators, "edges": edges})

    return build


@pytest.fixture(scope="session")
def equal_workers() -> Callable[..., Cluster]:
    def build(count: int, slots: int, **stated: float) -> Cluster:
        return Cluster.model_validate({"count": count, "slots": slots, **stated})

    return build


@pytest.fixture(scope="session")
def problem_of(chain: Callable[..., Dataflow], equal_workers: Callable[..., Cluster]) -> Callable[..., Problem]:
    """A chain on equal workers, as a problem."""

    def build(parallelism: tuple[int, ...], count: int, slots: int, **loads: list[float]) -> Problem:
        return Problem.of(chain(*parallelism, **loads), equal_workers(count, slots))

    return build
