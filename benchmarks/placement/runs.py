"""Shared by the placement benchmarks: DS2's parallelism, placements by each policy, and runs on the simulator.

A run is CAPSys section 6.2's: 6 minutes of warm-up, then 10 minutes of observation. Throughput is what the sources
emitted; backpressure is the mean share of that time in which source tasks waited for buffers downstream.
"""

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Final, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from models.cluster import Cluster
from models.dataflow import Dataflow
from models.job import Job, records_in_per_source_record
from models.placement import Policy, place, tune
from models.placement.baselines.flink import fill, spread
from models.placement.problem import Problem
from models.plan.parts import Placement
from models.planning.physical.expansion import catalogue_unit_costs, expand
from models.scaling.ds2.model import ds2
from models.scaling.rates import OperatorMetrics, Rates
from pipelines.measuring.estimate import operator_rates, source_rates_per_task
from testbeds.protocol import Configuration, MeasuredWindow
from testbeds.simulator import Simulator

Rule = Policy | Literal["caps, paper's rule"]
PAPERS_RULE: Final = "caps, paper's rule"
"""CAPS whose tuning relaxes all dimensions by one factor (section 5.2), including those that cannot become a bottleneck."""
QUERIES: Final = {
    "Q1-sliding": "nexmark-q5",
    "Q2-join": "nexmark-q8",
    "Q3-inf": "q3-inf",
    "Q4-join": "nexmark-q3",
    "Q5-aggregate": "nexmark-q6",
    "Q6-session": "nexmark-q11",
}
"""Jobs of the catalogue that stand for the queries of CAPSys section 6.1."""
WARMUP_S, OBSERVE_S = 360.0, 600.0
SUSTAINED = 0.99
"""Share of the target rate from which on it counts as reached."""
PRECISION = 0.03
HEADROOM = 1.2
"""Headroom on the target rate if DS2 decides from rates of isolated operators: full workers are a tenth slower on the
simulator, and deployments differ by some 5 %."""
PROFILE_SHARE, PROFILE_S, PROFILES = 0.5, 120.0, 5


@dataclass(frozen=True)
class Deployment:
    """A deployment: its tasks and their placement."""

    parallelism: Mapping[str, int]
    placement: Placement


@dataclass(frozen=True)
class Measured:
    """The result of one run, for all sources together and for each."""

    throughput: float
    backpressure: float
    by_source: Mapping[str, tuple[float, float]]
    """Source -> records/s emitted, share of time backpressured."""
    window: MeasuredWindow


def on_cores(cluster: Cluster, cores: float) -> Cluster:
    """The same workers with `cores` cores each."""
    workers = tuple(w.model_copy(update={"cores": cores}) for w in cluster.workers)
    return cluster.model_copy(update={"workers": workers})


def true_rates(job: Job) -> dict[str, float]:
    """Records/s of useful time of one task of each operator (sources: out), profiled alone on a worker of its own."""
    return dict(_profiled(job.model_dump_json(by_alias=True)))


@cache
def _profiled(job_json: str) -> tuple[tuple[str, float], ...]:
    """CAPSys section 5.1: each operator on a worker of its own, at half of what one task of each takes; the
    mean of several deployments, since their speed differs."""
    job = Job.model_validate_json(job_json)
    alone = Cluster.model_validate(
        {
            "workers": [
                {"name": f"profile-{o.name}", "slots": 1, "cores": 8, "memory_mb": 32768, "io": 479.2e6, "net": 1.25e9}
                for o in job.operators
            ]
        }
    )
    configuration = Configuration(
        {o.name: 1 for o in job.operators}, 4096.0, {f"profile-{o.name}": {o.name: 1} for o in job.operators}
    )
    profiles = [_profile(job, configuration, alone, seed) for seed in range(PROFILES)]
    return tuple((name, statistics.fmean(p[name] for p in profiles)) for name in job.order)


def _profile(job: Job, configuration: Configuration, alone: Cluster, seed: int) -> dict[str, float]:
    with Simulator(alone).deploy(job, configuration, run="profile", seed=seed) as run:
        rate = PROFILE_SHARE * run.inject(1e9, WARMUP_S, "warmup").achieved_rate
        run.inject(rate, PROFILE_S, "ramp")
        return observed_rates(job, run.inject(rate, PROFILE_S, "profile").samples)


def rates_for_ds2(job: Job, rate: float, parallelism: Mapping[str, int], per_task: Mapping[str, float]) -> Rates:
    """Input of DS2 at a target of `rate`; selectivities are those of the job."""
    return Rates(
        edges=tuple((e.upstream, e.downstream) for e in job.edges),
        source_rates={s.name: rate * s.rate_share for s in job.sources},
        operators={
            o.name: OperatorMetrics(
                parallelism=parallelism[o.name],
                true_processing_rate=per_task[o.name] * parallelism[o.name],
                true_output_rate=per_task[o.name] * parallelism[o.name] * (1.0 if o in job.sources else o.selectivity),
            )
            for o in job.operators
        },
    )


def parallelism_for(job: Job, rate: float, per_task: Mapping[str, float], headroom: float = HEADROOM) -> dict[str, int]:
    """DS2's parallelism, sources included."""
    return ds2(rates_for_ds2(job, headroom * rate, dict.fromkeys(job.order, 1), per_task)).parallelism


def physical(job: Job, parallelism: Mapping[str, int], rate: float) -> Dataflow:
    """The tasks with their loads at `rate`, by the job's unit costs."""
    records_in = {name: ratio * rate for name, ratio in records_in_per_source_record(job).items()}
    return expand(job, parallelism, records_in, catalogue_unit_costs(job), 0.0)


def place_by(
    policy: Rule,
    job: Job,
    parallelism: Mapping[str, int],
    rate: float,
    cluster: Cluster,
    seed: int,
    submitted: Sequence[Sequence[str]] = (),
) -> Placement:
    """A placement; Flink's policies take jobs one by one in the order submitted."""
    dataflow = physical(job, parallelism, rate)
    if policy == PAPERS_RULE:
        return tune(dataflow, cluster, idle_share=0.0, seed=seed).placement
    if submitted and policy != "caps":
        problem = Problem.of(dataflow, cluster)
        return problem.placement({"default": fill, "evenly": spread}[policy](problem, seed, submitted))
    return place(dataflow, cluster, policy, seed=seed).placement


def run_plan(job: Job, deployment: Deployment, rate: float, cluster: Cluster, seed: int) -> Measured:
    """One run of CAPSys section 6.2 on the simulator."""
    memory_mb = min(w.memory_mb or 32768.0 for w in cluster.workers)
    configuration = Configuration(deployment.parallelism, memory_mb, deployment.placement)
    with Simulator(cluster).deploy(job, configuration, run="benchmark", seed=seed) as run:
        run.inject(rate, WARMUP_S, "warmup")
        window = run.inject(rate, OBSERVE_S, "observe")
    return measured(job, window)


def measured(job: Job, window: MeasuredWindow) -> Measured:
    """Throughput and backpressure of the sources in a window."""
    by_source = {s.name: _source(window.samples, s.name, window.seconds) for s in job.sources}
    tasks = [_own(window.samples, name).num_rows for name in by_source]
    pressure = sum(n * p for n, (_, p) in zip(tasks, by_source.values(), strict=True)) / sum(tasks)
    return Measured(window.achieved_rate, pressure, by_source, window)


def _own(samples: pa.Table, operator: str) -> pa.Table:
    return samples.filter(pc.field("operator") == operator)


def _source(samples: pa.Table, operator: str, seconds: float) -> tuple[float, float]:
    own = _own(samples, operator)
    waited = pc.sum(own["backpressured_s"]).as_py() / pc.sum(own["interval_s"]).as_py()
    return pc.sum(own["records_out"]).as_py() / seconds, waited


def observed_rates(job: Job, samples: pa.Table) -> dict[str, float]:
    """True rates of one task in a run, contention included."""
    seen = {r.name: r.true_rate_per_task for r in operator_rates(job, samples)}
    return {**source_rates_per_task(job, samples), **seen}


def sustains(job: Job, rate: float, cluster: Cluster) -> bool:
    """Whether CAPS's plan of DS2's parallelism reaches the rate in both of two deployments."""
    parallelism = parallelism_for(job, rate, true_rates(job))
    plan = Deployment(parallelism, place_by("caps", job, parallelism, rate, cluster, 0))
    return all(run_plan(job, plan, rate, cluster, seed).throughput >= SUSTAINED * rate for seed in (0, 1))


def highest_rate(job: Job, cluster: Cluster) -> float:
    """The target of the experiments: the highest rate that the cluster takes with CAPS (CAPSys section 3.1).

    From the highest rate that there are slots and cores for, downwards: sustained rates are no interval, since DS2
    rounds up.
    """
    per_task, ratio = true_rates(job), records_in_per_source_record(job)
    cores_per_record = sum(ratio[o.name] * o.cost.cpu_s for o in job.operators)
    low, high = 1.0, sum(w.cores or float("inf") for w in cluster.workers) / cores_per_record
    while high / low > 1.001:
        middle = (low * high) ** 0.5
        fits = sum(parallelism_for(job, middle, per_task).values()) <= cluster.slots
        low, high = (middle, high) if fits else (low, middle)
    while not sustains(job, low, cluster):
        low *= 1 - PRECISION
    return low


def spread_of(values: Sequence[float] | np.ndarray, style: str = ".0%") -> str:
    """Median, minimum and maximum."""
    return f"{statistics.median(values):{style}} ({min(values):{style}}, {max(values):{style}})"
