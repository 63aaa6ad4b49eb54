"""Feature extraction in Spark, polars and pandas: rows per second and peak memory, side by side.

    python -m benchmarks.features.extraction [--rows 1000000 10000000] [--repeat 3]

Each engine runs in a process of its own, on the same Parquet files, with two threads (Spark: `local[2]`, a driver heap
of 1 GiB). Memory is the resident memory of the whole process tree, the JVM included, sampled every 20 ms. The results of
the three engines are compared.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
import psutil
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.features.engines import ENGINES
from models.metrics import FEATURE_COLUMNS, FEATURE_KEY, SAMPLE_COLUMNS, ColumnType
from testbeds.protocol import SAMPLE_SCHEMA

OPERATORS: Final = ("source", "filter", "window", "join", "sink")
TASKS: Final = 50
INTERVALS: Final = 200
ROWS_A_RUN: Final = len(OPERATORS) * TASKS * INTERVALS
THREADS: Final = "2"
DRIVER_MEMORY: Final = "1g"


@dataclass(frozen=True)
class Figures:
    """Result of one engine with one number of rows."""

    engine: str
    rows: int
    start_s: float
    """Time from the start of the process until the engine is ready: imports, and Spark's JVM."""
    first_s: float
    """The first extraction."""
    best_s: float
    """The fastest extraction of several in the same process."""
    peak_mib: float


def write_run(folder: Path, number: int) -> None:
    """Samples of one measurement run: 50 tasks of each of five operators, 200 intervals."""
    random = np.random.default_rng(number)
    n = ROWS_A_RUN
    columns: dict[str, pa.Array] = {
        c.name: pa.array(random.random(n) * 1e4) for c in SAMPLE_COLUMNS if c.type is ColumnType.DOUBLE
    }
    step, task = np.divmod(np.arange(n), len(OPERATORS) * TASKS)
    operator = np.array(OPERATORS)[task % len(OPERATORS)]
    columns["time_s"], columns["interval_s"] = pa.array(5.0 * (step + 1)), pa.array(np.full(n, 5.0))
    shares = random.dirichlet([2.0, 1.0, 1.0], n) * 5.0
    for index, name in enumerate(("busy_s", "backpressured_s", "idle_s")):
        columns[name] = pa.array(shares[:, index])
    columns["state_latency_s"] = pa.array(random.random(n) * 1e-4, mask=~np.isin(operator, ["window", "join"]))
    columns["lag_records"] = pa.array(random.random(n), mask=operator != "source")
    columns["task"] = pa.array(task // len(OPERATORS))
    columns["operator"], columns["worker"] = pa.array(operator), pa.array(np.char.add("tm-", (task % 16).astype(str)))
    columns["phase"] = pa.array(np.where(step < INTERVALS // 4, "warmup", "observe"))
    in_file = [name for name in SAMPLE_SCHEMA.names if name not in ("run", "job")]
    path = folder / "job=bench" / f"run=r{number:05d}"
    path.mkdir(parents=True)
    pq.write_table(pa.table({name: columns[name] for name in in_file}), path / "samples.parquet")


def work(engine: str, folder: Path, out: Path, repeat: int) -> None:
    """The work of the subprocess."""
    extract, end = ENGINES[engine](folder)
    ready = time.time()
    seconds = []
    for _ in range(repeat):
        begun = time.perf_counter()
        table = extract()
        seconds.append(time.perf_counter() - begun)
    pq.write_table(table.sort_by([(name, "ascending") for name in FEATURE_KEY]), out)
    print(json.dumps({"ready": ready, "seconds": seconds}))
    end()


def measure(engine: str, rows: int, folder: Path, out: Path, repeat: int) -> Figures:
    variables = {"POLARS_MAX_THREADS": THREADS, "OMP_NUM_THREADS": THREADS, "ARROW_NUM_THREADS": THREADS}
    variables |= {"SLUICE_SPARK_MASTER": f"local[{THREADS}]", "SLUICE_SPARK_DRIVER_MEMORY": DRIVER_MEMORY}
    command = [
        sys.executable,
        "-m",
        "benchmarks.features.extraction",
        "--engine",
        engine,
        str(folder),
        str(out),
        "--repeat",
        str(repeat),
    ]
    begun = time.time()
    process = subprocess.Popen(command, env={**os.environ, **variables}, stdout=subprocess.PIPE, text=True)
    peak = 0
    while process.poll() is None:
        peak = max(peak, resident_bytes(process.pid))
        time.sleep(0.02)
    assert process.stdout is not None
    said = process.stdout.read()
    if process.returncode != 0:
        raise SystemExit(f"{engine} failed on {rows:,} rows (exit code {process.returncode})")
    figures = json.loads(said.splitlines()[-1])
    seconds = figures["seconds"]
    return Figures(engine, rows, figures["ready"] - begun, seconds[0], min(seconds), peak / 2**20)


def resident_bytes(pid: int) -> int:
    """Resident memory of a process and all its descendants."""
    total = 0
    try:
        root = psutil.Process(pid)
        for process in [root, *root.children(recursive=True)]:
            total += process.memory_info().rss
    except psutil.NoSuchProcess:
        return total
    return total


def largest_difference(one: Path, other: Path) -> float:
    """Largest relative difference between two results, which must have the same rows and the same nulls."""
    a, b = pq.read_table(one).to_pandas(), pq.read_table(other).to_pandas()
    numbers = [c.name for c in FEATURE_COLUMNS if c.type is not ColumnType.STRING]
    left, right = a[numbers].to_numpy(float), b[numbers].to_numpy(float)
    if left.shape != right.shape or (np.isnan(left) != np.isnan(right)).any():
        return float("inf")
    scale = np.maximum(np.abs(left), np.abs(right))
    with np.errstate(invalid="ignore"):
        return float(np.nanmax(np.where(scale > 0, np.abs(left - right) / scale, 0.0)))


def line(few: Figures, many: Figures, of: str) -> tuple[float, float]:
    """Intercept and slope (per row) of a figure through two numbers of rows."""
    y0, y1 = (getattr(f, of) for f in (few, many))
    slope = (y1 - y0) / (many.rows - few.rows)
    return y0 - slope * few.rows, slope


def crossing(spark: tuple[float, float], other: tuple[float, float]) -> str:
    """Where Spark's line falls below the other's, in words."""
    (a, b), (c, d) = spark, other
    if b <= 0 or d <= 0:
        return "unknown: with so few rows the start-up dominates"
    if b >= d:
        return "never: each further row costs Spark no less"
    rows = (a - c) / (d - b)
    return f"at {rows:,.0f} rows" if rows > 0 else "at any number of rows"


def report(results: list[Figures], sizes: list[int]) -> None:
    print(f"\n{'engine':8}{'rows':>12}{'start s':>9}{'first s':>9}{'best s':>9}{'rows/s':>13}{'peak MiB':>10}")
    for f in results:
        print(
            f"{f.engine:8}{f.rows:12,}{f.start_s:9.1f}{f.first_s:9.2f}{f.best_s:9.2f}"
            f"{f.rows / f.best_s:13,.0f}{f.peak_mib:10,.0f}"
        )
    if len(sizes) < 2:
        return
    of = {(f.engine, f.rows): f for f in results}
    few, many = min(sizes), max(sizes)
    lines = {(e, what): line(of[e, few], of[e, many], what) for e in ENGINES for what in ("best_s", "peak_mib")}
    print(f"\nStraight lines through {few:,} and {many:,} rows; what lies beyond is extrapolated:")
    for engine in ("polars", "pandas"):
        print(f"  Spark is faster than {engine}: {crossing(lines['spark', 'best_s'], lines[engine, 'best_s'])}")
        print(
            f"  Spark needs less memory than {engine}: {crossing(lines['spark', 'peak_mib'], lines[engine, 'peak_mib'])}"
        )
    for engine in ENGINES:
        print(f"  {engine}: {memory_in_words(*lines[engine, 'peak_mib'])}")
    times = lines["spark", "best_s"][1] / lines["polars", "best_s"][1]
    print(f"  a further row costs Spark {times:.0f} times what it costs polars: as many more cores would draw level")


def memory_in_words(base: float, slope: float) -> str:
    """How memory grows with rows, and how many fit this machine; MiB, and MiB per row."""
    if slope * 1e6 < 10.0:
        return "memory hardly grows with the rows"
    have = psutil.virtual_memory().total / 2**20
    return f"{slope * 1e6:,.0f} MiB per million rows; {have:,.0f} MiB hold {(have - base) / slope:,.0f} rows"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, nargs="+", default=[1_000_000, 10_000_000])
    parser.add_argument("--repeat", type=int, default=3, help="extractions in each process")
    parser.add_argument("--engine", nargs=3, metavar=("ENGINE", "SAMPLES", "OUT"), help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.engine:
        work(given.engine[0], Path(given.engine[1]), Path(given.engine[2]), given.repeat)
        return
    results: list[Figures] = []
    with tempfile.TemporaryDirectory(prefix="sluice-features-") as name:
        for rows in given.rows:
            folder = Path(name) / str(rows)
            for number in range(max(1, rows // ROWS_A_RUN)):
                write_run(folder, number)
            size = sum(p.stat().st_size for p in folder.rglob("*.parquet")) / 2**20
            print(f"{rows:,} samples in {max(1, rows // ROWS_A_RUN)} files, {size:,.0f} MiB of Parquet", flush=True)
            outs = {engine: Path(name) / f"{rows}-{engine}.parquet" for engine in ENGINES}
            results += [measure(engine, rows, folder, out, given.repeat) for engine, out in outs.items()]
            for engine in ("polars", "pandas"):
                difference = largest_difference(outs["spark"], outs[engine])
                print(f"  largest relative difference between Spark and {engine}: {difference:.1e}", flush=True)
    report(results, given.rows)


if __name__ == "__main__":
    main()
