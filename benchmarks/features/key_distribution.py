"""Key distributions on Spark: time per record and peak memory, by number of records.

    python -m benchmarks.features.key_distribution [--records 1000000 10000000 100000000] [--exponent 1.0] [--keys 10000000]

Each number of records is read by a process of its own (Spark: `local[2]`, a driver heap of 1 GiB) from Parquet files of up
to 10 million records, several times; the fastest counts. What the same job takes for 1,000 records is its fixed cost. CPU
time, of the whole process tree, depends less than elapsed time on what else runs on the machine. Memory is the resident
memory of the process tree, JVM and Python workers included, sampled every 20 ms. Keys are drawn by Zipf's law. The records
of each of 16 tasks are compared with those counted in NumPy.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
import psutil
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.features.extraction import resident_bytes
from models.keys.columns import Integers, row_hash
from models.keys.distribution import key_distribution
from models.keys.groups import group_of, task_counts
from models.keys.sketch import Measure

THREADS: Final = "2"
DRIVER_MEMORY: Final = "1g"
A_FILE: Final = 10_000_000
A_CHUNK: Final = 1_000_000
FEW: Final = 1_000
TASKS: Final = 16
GROUPS: Final = 128


@dataclass(frozen=True)
class Figures:
    """What one number of records took."""

    records: int
    fixed_s: float
    best_s: float
    fixed_cpu_s: float
    best_cpu_s: float
    peak_mib: float
    exponent: str
    distinct: str
    exact: bool
    """Whether the records of each task are those counted in NumPy."""

    @property
    def ns(self) -> float:
        """Elapsed time of a further record."""
        return max(self.best_s - self.fixed_s, 0.0) / self.records * 1e9

    @property
    def cpu_ns(self) -> float:
        """CPU time of a further record, of all cores."""
        return max(self.best_cpu_s - self.fixed_cpu_s, 0.0) / self.records * 1e9


def zipf_keys(random: np.random.Generator, records: int, exponent: float, keys: int) -> np.ndarray:
    """Keys 1 to `keys`, each in proportion to the integral of x^-s from it to the next one."""
    u, end = random.random(records), float(keys + 1)
    power = 1.0 - exponent
    drawn: np.ndarray = np.exp(u * np.log(end)) if power == 0 else ((end**power - 1.0) * u + 1.0) ** (1.0 / power)
    return drawn.astype(np.int64)


def write(folder: Path, records: int, exponent: float, keys: int) -> list[int]:
    """The files; returns the records of each key group."""
    folder.mkdir()
    random, groups = np.random.default_rng(records), np.zeros(GROUPS, np.int64)
    for number, first in enumerate(range(0, records, A_FILE)):
        with pq.ParquetWriter(folder / f"part-{number:04d}.parquet", pa.schema([("key", pa.int64())])) as file:
            for start in range(first, min(first + A_FILE, records), A_CHUNK):
                made = zipf_keys(random, min(A_CHUNK, records - start), exponent, keys)
                groups += np.bincount(group_of(row_hash([Integers(made, 8)]), GROUPS), minlength=GROUPS)
                file.write_table(pa.table({"key": made}))
    return groups.tolist()


def work(few: Path, many: Path, repeat: int) -> None:
    """What the subprocess does."""
    from spark.key_distribution import key_sketch
    from spark.recorded import read_recorded
    from spark.session import session

    spark, took = session(), {}
    for folder in (few, many):
        times = []
        for _ in range(repeat if folder == many else repeat + 2):
            begun, used = time.perf_counter(), cpu_seconds()
            sketch = key_sketch(read_recorded(spark, str(folder), "parquet"), "key", Measure())
            times.append((time.perf_counter() - begun, cpu_seconds() - used))
        took[folder.name] = [min(one) for one in zip(*times, strict=True)]
    found = key_distribution(sketch, [TASKS], GROUPS)
    spark.stop()
    law, distinct = found.tail.exponent, found.distinct_keys
    said = {
        **dict(zip(("fixed_s", "fixed_cpu_s"), took[few.name], strict=True)),
        **dict(zip(("best_s", "best_cpu_s"), took[many.name], strict=True)),
        "tasks": found.shares[0].records,
        "exponent": "-" if law is None else f"{law.value:.2f} ({law.low:.2f}-{law.high:.2f})",
        "distinct": f"{distinct.value:,.0f} ({distinct.low:,.0f}-{distinct.high:,.0f})",
    }
    print(json.dumps(said))


def cpu_seconds() -> float:
    """Used by this process and all its descendants so far."""
    root, total = psutil.Process(), 0.0
    for process in [root, *root.children(recursive=True)]:
        with suppress(psutil.NoSuchProcess):
            times = process.cpu_times()
            total += times.user + times.system
    return total


def measure(records: int, few: Path, many: Path, groups: list[int], repeat: int) -> Figures:
    variables = {"SLUICE_SPARK_MASTER": f"local[{THREADS}]", "SLUICE_SPARK_DRIVER_MEMORY": DRIVER_MEMORY}
    command = [
        sys.executable,
        "-m",
        "benchmarks.features.key_distribution",
        "--work",
        str(few),
        str(many),
        "--repeat",
        str(repeat),
    ]
    process = subprocess.Popen(command, env={**os.environ, **variables}, stdout=subprocess.PIPE, text=True)
    peak = 0
    while process.poll() is None:
        peak = max(peak, resident_bytes(process.pid))
        time.sleep(0.02)
    assert process.stdout is not None
    if process.returncode != 0:
        raise SystemExit(f"{records:,} records failed (exit code {process.returncode})")
    said = json.loads(process.stdout.read().splitlines()[-1])
    exact = said.pop("tasks") == task_counts(np.array(groups), TASKS).tolist()
    return Figures(records=records, peak_mib=peak / 2**20, exact=exact, **said)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--records", type=int, nargs="+", default=[1_000_000, 10_000_000, 100_000_000])
    parser.add_argument("--exponent", type=float, default=1.0, help="of Zipf's law")
    parser.add_argument("--keys", type=int, default=10_000_000, help="number of keys that may come")
    parser.add_argument("--repeat", type=int, default=2, help="times each file is read")
    parser.add_argument("--work", nargs=2, metavar=("FEW", "MANY"), help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.work:
        work(Path(given.work[0]), Path(given.work[1]), given.repeat)
        return
    head = (
        "records",
        "fixed s",
        "best s",
        "ns/record",
        "CPU ns",
        "peak MiB",
        "exact",
        "tail exponent",
        "distinct keys",
    )
    print("{:>13}{:>9}{:>9}{:>11}{:>8}{:>10}{:>7}{:>20}{:>36}".format(*head), flush=True)
    with tempfile.TemporaryDirectory(prefix="sluice-keys-") as name:
        write(Path(name) / "few", FEW, given.exponent, given.keys)
        for records in given.records:
            many = Path(name) / str(records)
            groups = write(many, records, given.exponent, given.keys)
            f = measure(records, Path(name) / "few", many, groups, given.repeat)
            print(
                f"{f.records:13,}{f.fixed_s:9.2f}{f.best_s:9.2f}{f.ns:11.0f}{f.cpu_ns:8.0f}{f.peak_mib:10,.0f}"
                f"{'yes' if f.exact else 'NO':>7}{f.exponent:>20}{f.distinct:>36}",
                flush=True,
            )


if __name__ == "__main__":
    main()
