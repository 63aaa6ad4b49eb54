"""Placement problems for benchmarks: the catalogue on its clusters, the published profiles, and random ones by seed."""

import json
import math
import random
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from models.cluster import Cluster
from models.dataflow import Dataflow
from models.job import Job, records_in_per_source_record
from models.planning.physical.expansion import catalogue_unit_costs, expand
from pipelines.inputs.catalogue import load_cluster, load_job

ROOT: Final = Path(__file__).parents[2]
Q2_SCALED: Final = json.loads((ROOT / "tests" / "data" / "capsys" / "q2_scaled.json").read_text())
CLUSTERS: Final = ("capsys-4x4", "capsys-4x8", "testbed", "capsys-18x8")
BUSYNESS: Final = 0.8
"""Of the tasks of the catalogue's jobs."""
FULL: Final = 0.9
"""Share of a cluster's slots that a job of the catalogue takes."""


@dataclass(frozen=True)
class Instance:
    """One placement problem."""

    source: str
    """catalogue, published or random"""
    name: str
    dataflow: Dataflow
    cluster: Cluster


def q2_scaled(workers: int, slots: int, tasks: int) -> tuple[Dataflow, Cluster]:
    """Q2-join with its parallelism scaled to the tasks, as the note in the data's file says."""
    operators = [dict(o) for o in Q2_SCALED["operators"]]
    for o in operators:
        o["parallelism"] = max(1, int(o.pop("base") / 21 * tasks))
    operators[-1]["parallelism"] = tasks - sum(o["parallelism"] for o in operators[:-1])
    dataflow = Dataflow.model_validate({"operators": operators, "edges": Q2_SCALED["edges"]})
    return dataflow, Cluster.model_validate({"count": workers, "slots": slots})


def published() -> Iterator[Instance]:
    """The published profile at 21 tasks, and scaled to 16..1024."""
    sizes = ((4, 6, 21), (4, 4, 16), (4, 16, 64), (8, 8, 64), (16, 4, 64), (8, 16, 128), (16, 16, 256), (16, 64, 1024))
    for workers, slots, tasks in sizes:
        yield Instance("published", f"q2-scaled {workers} x {slots}", *q2_scaled(workers, slots, tasks))


def catalogue() -> Iterator[Instance]:
    """Each job at the highest rate at which its tasks take nine tenths of a cluster's slots."""
    for path in sorted((ROOT / "jobs").glob("*.yaml")):
        job = load_job(path.stem)
        ratio = records_in_per_source_record(job)
        for name in CLUSTERS:
            cluster = load_cluster(name)
            low, high = 1.0, 1e9
            while high / low > 1.001:
                middle = math.sqrt(low * high)
                fits = sum(_tasks(job, middle).values()) <= FULL * cluster.slots
                low, high = (middle, high) if fits else (low, middle)
            parallelism = _tasks(job, low)
            if sum(parallelism.values()) <= cluster.slots:
                rates = {operator: share * low for operator, share in ratio.items()}
                dataflow = expand(job, parallelism, rates, catalogue_unit_costs(job), 0.0)
                yield Instance("catalogue", f"{path.stem} on {name}", dataflow, cluster)


def _tasks(job: Job, rate: float) -> dict[str, int]:
    ratio = records_in_per_source_record(job)
    wanted = {o.name: math.ceil(rate * ratio[o.name] * o.cost.cpu_s / BUSYNESS) for o in job.operators}
    return {o.name: min(max(1, wanted[o.name]), o.max_parallelism or wanted[o.name] + 1) for o in job.operators}


def generated(seed: int) -> Instance:
    """2-7 operators with 1-16 tasks each, on equal workers or two types of them, with and without memory."""
    rng = random.Random(seed)

    def load() -> float:
        return rng.choice([0.0, rng.random(), rng.random() * 10, float(round(rng.random() * 5))])

    memory = rng.random() < 0.4
    operators: list[dict[str, Any]] = [
        {
            "name": f"o{i}",
            "parallelism": rng.randint(1, rng.choice([3, 8, 16])),
            "cpu": load(),
            "io": load(),
            "net": load(),
            **({"memory_mb": rng.choice([0.0, 100.0, 250.0, 500.0])} if memory else {}),
        }
        for i in range(rng.randint(2, 7))
    ]
    edges = []
    for j in range(1, len(operators)):
        for i in rng.sample(range(j), k=min(j, rng.choice([1, 1, 2]))):
            equal = operators[i]["parallelism"] == operators[j]["parallelism"]
            kinds = ["hash", "rebalance", "broadcast"] + (["forward"] if equal else [])
            edges.append({"from": f"o{i}", "to": f"o{j}", "partitioning": rng.choice(kinds)})
    tasks = sum(int(o["parallelism"]) for o in operators)
    dataflow = Dataflow.model_validate({"operators": operators, "edges": edges})
    return Instance("random", f"random {seed}", dataflow, Cluster.model_validate(_workers(rng, tasks, memory)))


def _workers(rng: random.Random, tasks: int, memory: bool) -> dict[str, Any]:
    slots = rng.choice([2, 4, 4, 8, 16])
    wanted = tasks * (1 + rng.choice([0, 0, 0.1, 0.3, 1.0]))
    if rng.random() < 0.5:
        limit = {"memory_mb": 500.0 * slots * rng.choice([0.6, 1.0])} if memory else {}
        return {"count": max(2, math.ceil(wanted / slots)), "slots": slots, **limit}
    small = {"slots": slots, "cores": rng.choice([2, 4]), "io": rng.choice([5, 50]), "net": 20.0}
    large = {"slots": slots * 2, "cores": 8, "io": 50, "net": rng.choice([20.0, 40.0])}
    if memory:
        small, large = small | {"memory_mb": 400.0 * slots}, large | {"memory_mb": 800.0 * slots}
    workers: list[dict[str, Any]] = []
    while sum(w["slots"] for w in workers) < wanted:
        workers.append({"name": f"w{len(workers)}", **rng.choice([small, large])})
    return {"workers": workers}
