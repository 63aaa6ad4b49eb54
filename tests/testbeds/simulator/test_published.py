"""The simulator beside StreamBed's measurements: the lines of the table in docs/simulator.md.

Data: StreamBed (Table 2, Table 4, section 8.2, published runs), tests/data/streambed.
"""

import csv
import statistics
from pathlib import Path

import pytest

from models.capacity.mst import MstSearch, MstSettings
from pipelines.catalogue import load_job
from testbeds.protocol import Configuration
from testbeds.simulator import Noise, Physics, Simulator, streambed_cluster

DATA = Path(__file__).parents[2] / "data" / "streambed"
QUIET = Physics(noise=Noise(run=0.0))
"""Two deployments of one configuration differ by some 5 %; here they do not."""
SOURCES = 64


def configuration(job, parallelism, memory_mb=65536.0, sources=SOURCES):
    tasks = dict(zip([o.name for o in job.scaled_operators], parallelism, strict=True))
    return Configuration({**{o.name: sources for o in job.sources}, **tasks}, memory_mb)


def find_mst(name, parallelism, memory_mb=65536.0):
    job, search = load_job(f"nexmark-{name}"), MstSearch(MstSettings.simple())
    with Simulator(physics=QUIET).deploy(job, configuration(job, parallelism, memory_mb), run="r", seed=1) as run:
        while (step := search.next()) is not None:
            search.observe(run.inject(step.rate, step.seconds, step.phase).achieved_rate)
    return search.mst


@pytest.mark.parametrize(
    ("name", "operators", "published"),
    [("q1", 2, 1.6e6), ("q2", 2, 3.6e6), ("q5", 9, 50e3), ("q8", 9, 1.4e6), ("q11", 4, 60e3)],
)
def test_single_tasks(name, operators, published):
    """Table 2."""
    assert find_mst(name, [1] * operators) == pytest.approx(published, rel=0.07)


def grid(query, least_memory_mb):
    """Parallelism -> published MSTs."""
    found: dict[tuple[int, ...], list[float]] = {}
    with (DATA / "grid_co_ce.csv").open() as file:
        for row in csv.DictReader(file):
            if row["query"] == query and float(row["tm_memory_mb"]) >= least_memory_mb:
                tasks = tuple(int(n) for n in row["parallelism_per_operator"].split("|"))
                found.setdefault(tasks, []).append(float(row["mst_events_per_s"]))
    return found


@pytest.mark.parametrize("tasks", [t for t in grid("q5", 32768) if len(grid("q5", 32768)[t]) > 1], ids=str)
def test_q5_at_two_and_four_gb_a_slot(tasks):
    published = statistics.median(grid("q5", 32768)[tasks])
    assert find_mst("q5", tasks) == pytest.approx(published, rel=0.15)


@pytest.mark.parametrize(("tasks", "estimate"), [((2, 1), 3e6), ((5, 1), 7e6), ((9, 2), 12e6), ((13, 3), 16e6)])
def test_what_q1_takes_when_offered_more(tasks, estimate):
    """Verification runs at 150 % of the estimated MST: the mean over the three memory sizes with these tasks."""
    with (DATA / "verification_runs.csv").open() as file:
        rows = [
            (float(r["estimated_mst"]), float(r["injected_rate"]), float(r["observed_mean"]))
            for r in csv.DictReader(file)
            if r["query"] == "q1" and float(r["tm_memory_mb"]) < 65536
        ]
    published = [seen for mst, rate, seen in rows if rate > 1.4 * mst and 0.8 < mst / estimate < 1.2]
    job = load_job("nexmark-q1")
    with Simulator(physics=QUIET).deploy(job, configuration(job, tasks, sources=96), run="r", seed=1) as run:
        run.inject(1.5 * estimate, 120, "warmup")
        simulated = run.inject(1.5 * estimate, 300, "observe").achieved_rate
    assert len(published) == 3
    assert simulated == pytest.approx(statistics.mean(published), rel=0.15)


@pytest.mark.parametrize(
    ("name", "tasks", "coefficients", "transform", "within"),
    [
        ("q11", (4, 42, 1, 1), (4.1, 3.9e4, -2.1e5), lambda x: x, 0.15),
        ("q8", (5, 4, 1, 5, 11, 1, 3, 1, 1), (2.6e3, 1.4e6, -3.9e6), lambda x: x**0.5, 0.35),
    ],
    ids=["q11-linear-48", "q8-sqrt-32"],
)
def test_the_published_scaling_curves(name, tasks, coefficients, transform, within):
    """Table 4, at the largest explored number of slots with 4 GB and 2 GB a slot."""
    a, b, c = coefficients
    per_slot_mb = 4096 if name == "q11" else 2048
    published = a * transform(per_slot_mb) + b * transform(sum(tasks)) + c
    assert find_mst(name, tasks, 16.0 * per_slot_mb) == pytest.approx(published, rel=within)


@pytest.mark.slow
@pytest.mark.parametrize(("rate", "sustained"), [(2.5e6, True), (3.0e6, False), (3.75e6, False)])
def test_q5_in_production(rate, sustained):
    """Section 8.2, Figure 8: 1,069 slots of 2 GB sustain 2.5 M/s, with passing instability, and neither 120 nor 150 %.

    The instability may take 3 % of the rate within half an hour.
    """
    with (DATA / "production_runs.csv").open() as file:
        rows = [r for r in csv.DictReader(file) if r["query"] == "q5" and r["tm_memory_mb"] == "32768"]
    tasks = [int(n) for n in rows[0]["parallelism_per_operator"].split("|")]
    assert rate in {float(r["injected_rate"]) for r in rows}
    job, testbed = load_job("nexmark-q5"), Simulator(streambed_cluster(68), physics=QUIET)
    with testbed.deploy(job, configuration(job, tasks, 32768.0), run="r", seed=1) as run:
        run.inject(rate, 300, "ramp")
        achieved = run.inject(rate, 1800, "observe").achieved_rate
    assert (achieved >= 0.97 * rate) == sustained
