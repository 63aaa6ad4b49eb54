"""The simulator beside StreamBed's measurements: the lines of the table in docs/explanation/simulator.md.

Data: StreamBed (Table 2, Table 4, section 8.2, published runs), tests/data/streambed. What is compared is the median over
five seeds, with the noise of the simulator's defaults. Tolerances are three standard errors: of that median, and of the
published figure, as far as its repetitions or digits show it. Each test also checks that
wrong unit costs would be noticed.
"""

import csv
import math
import statistics
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from models.capacity.mst import MstSearch, MstSettings
from models.job import Job
from pipelines.inputs.catalogue import load_job
from testbeds.protocol import Configuration
from testbeds.simulator import Noise, Physics, Simulator, streambed_cluster

DATA = Path(__file__).parents[2] / "data" / "streambed"
SOURCES = 64
SEEDS = range(1, 6)
STANDARD_ERROR = math.sqrt(math.pi / 2) * Noise().run / math.sqrt(len(SEEDS))
"""Of the logarithm of a median over the seeds, 2.8 %: deployments differ by the noise of a run."""


def configuration(job, parallelism, memory_mb=65536.0, sources=SOURCES):
    tasks = dict(zip([o.name for o in job.scaled_operators], parallelism, strict=True))
    return Configuration({**{o.name: sources for o in job.sources}, **tasks}, memory_mb)


def with_costs(job: Job, factors: dict[str, float]) -> Job:
    """The job with other CPU time per record of the operators named."""
    operators = [
        o.model_copy(update={"cost": o.cost.model_copy(update={"cpu_s": factors.get(o.name, 1.0) * o.cost.cpu_s})})
        for o in job.operators
    ]
    return job.model_copy(update={"operators": tuple(operators)})


def find_mst(job: Job, parallelism, memory_mb=65536.0) -> float:
    """Median over the seeds."""
    found = []
    for seed in SEEDS:
        search = MstSearch(MstSettings.simple())
        with Simulator().deploy(job, configuration(job, parallelism, memory_mb), run="r", seed=seed) as run:
            while (step := search.next()) is not None:
                search.observe(run.inject(step.rate, step.seconds, step.phase).achieved_rate)
        found.append(search.mst)
    return statistics.median(found)


def off(simulated: float, published: float) -> float:
    """Distance of the logarithms."""
    return abs(math.log(simulated / published))


TABLE_2 = [
    ("q1", 2, 1.6e6, 5e4),
    ("q2", 2, 3.6e6, 5e4),
    pytest.param("q5", 9, 50e3, 5e2, marks=pytest.mark.slow),
    pytest.param("q8", 9, 1.4e6, 5e4, marks=pytest.mark.slow),
    pytest.param("q11", 4, 60e3, 5e2, marks=pytest.mark.slow),
]
"""Query, operators, records/s, and half of the last digit."""


@pytest.mark.parametrize(("name", "operators", "published", "half_digit"), TABLE_2)
def test_single_tasks(name, operators, published, half_digit):
    """Table 2. Unit costs that are a fifth off would be noticed."""
    job, within = load_job(f"nexmark-{name}"), 3 * STANDARD_ERROR + half_digit / published
    assert off(find_mst(job, [1] * operators), published) < within
    for factor in (0.8, 1.25):
        wrong = with_costs(job, {o.name: factor for o in job.scaled_operators})
        assert off(find_mst(wrong, [1] * operators), published) > within


def grid(query, least_memory_mb):
    """Parallelism -> published MSTs."""
    found: dict[tuple[int, ...], list[float]] = {}
    with (DATA / "grid_co_ce.csv").open() as file:
        for row in csv.DictReader(file):
            if row["query"] == query and float(row["tm_memory_mb"]) >= least_memory_mb:
                tasks = tuple(int(n) for n in row["parallelism_per_operator"].split("|"))
                found.setdefault(tasks, []).append(float(row["mst_events_per_s"]))
    return found


Q5 = {tasks: rates for tasks, rates in grid("q5", 32768).items() if len(rates) > 1}
"""Configurations that were measured several times, with 2 and 4 GB a slot."""
LARGEST = max(Q5, key=sum)


def tolerance(repeated: dict[tuple[int, ...], list[float]], tasks: tuple[int, ...]) -> float:
    """Three standard errors; the published runs of all configurations show how far repetitions differ."""
    logs = [[math.log(rate) for rate in rates] for rates in repeated.values()]
    squares = sum((x - statistics.mean(own)) ** 2 for own in logs for x in own)
    deviation = math.sqrt(squares / sum(len(own) - 1 for own in logs))
    return 3 * math.hypot(STANDARD_ERROR, deviation / math.sqrt(len(repeated[tasks])))


@pytest.mark.parametrize("tasks", Q5, ids=str)
def test_q5_at_two_and_four_gb_a_slot(tasks):
    simulated = find_mst(load_job("nexmark-q5"), tasks)
    assert off(simulated, statistics.median(Q5[tasks])) < tolerance(Q5, tasks)


@pytest.mark.parametrize(("operator", "rate"), [("join", 237905.1), ("max", 285815.6)])
def test_the_rates_at_low_busyness_cannot_give_the_published_throughput_of_q5(operator, rate):
    """BIDS2's instances hold lower rates of the join and the maximum, from tasks that were busy for a tenth of the time
    or less. With them the largest configuration would not take what it was published to take."""
    job = load_job("nexmark-q5")
    slower = with_costs(job, {operator: 1 / rate / job.operator(operator).cost.cpu_s})
    assert find_mst(slower, LARGEST) < min(Q5[LARGEST]) * (1 - 3 * STANDARD_ERROR)


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
    assert len(published) == 3
    spread = statistics.stdev(math.log(rate) for rate in published) / math.sqrt(3)
    within = 3 * math.hypot(STANDARD_ERROR, spread)

    def achieved(job: Job) -> float:
        found = []
        for seed in SEEDS:
            with Simulator().deploy(job, configuration(job, tasks, sources=96), run="r", seed=seed) as run:
                run.inject(1.5 * estimate, 120, "warmup")
                found.append(run.inject(1.5 * estimate, 300, "observe").achieved_rate)
        return statistics.median(found)

    job = load_job("nexmark-q1")
    assert off(achieved(job), statistics.mean(published)) < within
    assert off(achieved(with_costs(job, {"calc": 1.5})), statistics.mean(published)) > within


@dataclass(frozen=True)
class Line:
    """A query's line in Table 4, a M' + b n' + c of the memory of a TaskManager and the slots.

    Table 4 prints two digits, truncated. The coefficients are in the middle of those that agree with its digits and give
    Table 3, the fewest slots whose prediction reaches 1.1 times the rate; they fix the line to 2 %. With the memory of a
    slot in place of the TaskManager's no coefficients do.
    """

    coefficients: tuple[float, float, float]
    transform: Callable[[float], float]
    rate: float
    table_3: dict[float, int]

    def __call__(self, memory_mb: float, slots: int) -> float:
        a, b, c = self.coefficients
        return a * self.transform(memory_mb) + b * self.transform(slots) + c


LINES = {
    "q11": Line((4.145, 39.3e3, -215.5e3), float, 20e6, {8192: 565, 16384: 564, 32768: 562, 65536: 559}),
    "q8": Line((2647.5, 1.4925e6, -3.9475e6), math.sqrt, 15e6, {32768: 179, 65536: 176}),
}


@pytest.mark.parametrize("name", LINES)
def test_the_coefficients_give_table_3(name):
    line = LINES[name]
    for memory_mb, slots in line.table_3.items():
        assert line(memory_mb, slots - 1) < 1.1 * line.rate <= line(memory_mb, slots)


@pytest.mark.parametrize(
    ("name", "tasks", "memory_mb", "ratio"),
    [
        ("q11", (4, 42, 1, 1), 65536.0, 0.89),
        pytest.param("q8", (5, 4, 1, 5, 11, 1, 3, 1, 1), 32768.0, 1.03, marks=pytest.mark.slow),
    ],
    ids=["q11-48", "q8-32"],
)
def test_the_published_scaling_curves(name, tasks, memory_mb, ratio):
    """Table 4, at the largest explored number of slots with 4 GB and 2 GB a slot. Of q11 the simulator takes a tenth less
    than the line says."""
    job, curve = load_job(f"nexmark-{name}"), LINES[name](memory_mb, sum(tasks))
    assert off(find_mst(job, tasks, memory_mb), ratio * curve) < 3 * STANDARD_ERROR
    slower = with_costs(job, {o.name: 1.25 for o in job.scaled_operators})
    assert off(find_mst(slower, tasks, memory_mb), ratio * curve) > 3 * STANDARD_ERROR


@pytest.mark.slow
@pytest.mark.parametrize(
    ("memory_mb", "rate", "sustained"), [(32768, 2.5e6, True), (65536, 2.5e6, True), (32768, 3.75e6, False)]
)
def test_q5_in_production(memory_mb, rate, sustained):
    """Section 8.2, Figure 8: both profiles sustain 2.5 M/s, and 1,069 slots of 2 GB do not sustain 3.75 M/s.

    The text calls 1,069 slots of 2 GB and 1,079 slots of 4 GB saturated at 120 % (3.0 M/s) and at 150 % (3.75 M/s), since
    their throughput is chaotic. The rates in the artifact's notebook agree only for 2 GB at 3.75 M/s: 97.1 % on average,
    and up to 259 s of pending records. At 3.0 M/s they show 100 % with both profiles, and up to 103 s pending with 2 GB and
    3.6 s with 4 GB; at 3.75 M/s 100 % and up to 17 s with 4 GB. What the two disagree on is not tested.

    With 2 GB the paper sees passing instability at 2.5 M/s; it may take 3 % of the rate within half an hour.
    """
    with (DATA / "production_runs.csv").open() as file:
        rows = [r for r in csv.DictReader(file) if r["query"] == "q5" and r["tm_memory_mb"] == str(memory_mb)]
    tasks = [int(n) for n in rows[0]["parallelism_per_operator"].split("|")]
    assert rate in {float(r["injected_rate"]) for r in rows}
    job, testbed = load_job("nexmark-q5"), Simulator(streambed_cluster(68), physics=Physics(noise=Noise(run=0.0)))
    with testbed.deploy(job, configuration(job, tasks, float(memory_mb)), run="r", seed=1) as run:
        run.inject(rate, 300, "ramp")
        achieved = run.inject(rate, 1800, "observe").achieved_rate
    assert (achieved >= 0.97 * rate) == sustained
