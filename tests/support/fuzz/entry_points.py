"""What takes files and parameters of others, each as a function from a random generator to how it ended.

Commands run in this process, through the function behind `sluice`; tasks and readers are called as the DAGs call them.
"""

import contextlib
import io
import json
import logging
import random
import shutil
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from fuzz.mutations import NUMBERS, OTHERS, STRINGS, as_bytes, damaged, mutated, mutated_table
from models.errors import Infeasible, InvalidInput, SluiceError
from pipelines.cli import run
from pipelines.inputs.parsing.documents import parse_json
from pipelines.store.digests import digest

STATED = {0: "done", 1: "failed", 2: "unusable input", 3: "no feasible answer"}


@dataclass(frozen=True)
class Ending:
    """How a call ended: one of the exit codes, and what a user saw."""

    code: int
    output: str
    errors: str

    def fault(self, is_json: bool) -> str | None:
        """The forbidden ending, or None."""
        if self.code not in STATED:
            return f"exit code {self.code}"
        if "Traceback" in self.errors + self.output:
            return "a traceback was printed"
        if self.code == 0 and is_json:
            try:
                parse_json(self.output)
            except ValueError as error:
                return f"what was printed is not one JSON document: {error}"
        if self.code != 0 and not self.errors.strip():
            return f"exit code {self.code} without a word"
        return None


@dataclass(frozen=True)
class EntryPoint:
    name: str
    share: int
    """How often it is called, against the others."""
    call: Callable[[random.Random, Path], Ending]
    is_json: bool = True


def command(*arguments: str) -> Ending:
    """`sluice ARGUMENTS` in this process. Airflow, once it is imported, would log to standard output."""
    output, errors = io.StringIO(), io.StringIO()
    logging.disable()
    try:
        with contextlib.redirect_stdout(output), contextlib.redirect_stderr(errors):
            code = run(list(arguments))
    except BaseException:
        code = -1
        errors.write(traceback.format_exc())
    finally:
        logging.disable(logging.NOTSET)
    return Ending(code, output.getvalue(), errors.getvalue())


def task(call: Callable[[], Any]) -> Ending:
    """A function of Python, ended as the command line would end."""
    codes = {Infeasible: 3, InvalidInput: 2}
    try:
        return Ending(0, json.dumps(str(call())), "")
    except SluiceError as error:
        return Ending(next((code for kind, code in codes.items() if isinstance(error, kind)), 1), "", str(error))
    except BaseException:
        return Ending(-1, "", traceback.format_exc())


OFFER = {
    "name": "cloud",
    "kinds": [
        {"name": "small", "slots": 4, "cores": 4, "memory_mb": 16384, "price_per_hour": 0.25},
        {"name": "large", "slots": 16, "cores": 16, "memory_mb": 65536, "price_per_hour": "0.9", "count": 20},
    ],
}


class Corpus:
    """Right documents, as they lie in the repository."""

    def __init__(self, root: Path, stored_plan: Mapping[str, Any]) -> None:
        self.jobs = [yaml.safe_load(path.read_text()) for path in sorted((root / "jobs").glob("*.yaml"))]
        self.clusters = [yaml.safe_load(path.read_text()) for path in sorted((root / "clusters").glob("*.yaml"))]
        self.clusters.append(OFFER)
        self.measurements = (root / "tests" / "data" / "streambed" / "search_q5.csv").read_text()
        self.rates_table = (root / "tests" / "data" / "workloads" / "espa_140min.csv").read_text()
        self.stored_plan = dict(stored_plan)


GRAPH = {
    "name": "q1-sliding",
    "operators": [
        {"name": "source", "parallelism": 2, "cpu": 0.06, "io": 0.0, "net": 1880.0},
        {"name": "window", "parallelism": 4, "cpu": 0.74, "io": 17067.0, "net": 361.0, "memory_mb": 158},
        {"name": "sink", "parallelism": 1, "cpu": 0.1, "io": 0.0, "net": 0.0},
    ],
    "edges": [
        {"from": "source", "to": "window", "partitioning": "hash"},
        {"from": "window", "to": "sink", "partitioning": "rebalance"},
    ],
}
SMALL_CLUSTER = {"count": 3, "slots": 3, "cores": 4, "memory_mb": 4096, "io": 5e8, "net": 1.25e9}
RATES = {
    "edges": [["source", "flatmap"], ["flatmap", "count"]],
    "source_rates": {"source": 1_000_000.0},
    "operators": {
        "flatmap": {"parallelism": 1, "true_processing_rate": 100000.0, "true_output_rate": 2000000.0},
        "count": {"parallelism": 2, "true_processing_rate": 500000.0, "true_output_rate": 0.0},
    },
}
INSTANCE = {
    "operators": [
        {"name": "a", "true_rate_per_task": 1000.0, "records_in_per_source_record": 1.0, "max_parallelism": 8},
        {"name": "b", "true_rate_per_task": 500.0, "records_in_per_source_record": 0.5},
    ]
}
POLICIES = ("ds2", "flink", "justin", "dhalion", "hpa-cpu", "hpa-varga", "sluice", "nonsense")
FORMATS = ("overrides", "requirements", "deployment", "placement")
PARAMETERS: dict[str, Any] = {
    "job": "nexmark-q1",
    "rate": 400_000.0,
    "cluster": "production",
    "testbed": "simulator",
    "measurements": None,
    "measurement_rows": None,
    "model": "auto",
    "headroom": 1.1,
    "memory_mb": None,
    "max_task_slots": 12,
    "max_measurements": 3,
    "seed": 0,
    "run": None,
}


def write(rng: random.Random, folder: Path, name: str, data: Any) -> str:
    """A mutation of the data in a file, mostly JSON, sometimes YAML; its path."""
    form = "yaml" if rng.random() < 0.25 else "json"
    path = folder / f"{name}.{form}"
    path.write_bytes(as_bytes(rng, mutated(rng, data) if rng.random() < 0.97 else data, form))
    return str(path)


def entry_points(corpus: Corpus) -> list[EntryPoint]:
    def jobs(rng: random.Random, at: Path) -> Ending:
        return command("jobs", "show", write(rng, at, "job", rng.choice(corpus.jobs)), "--json")

    def shown_job(rng: random.Random, at: Path) -> Ending:
        return command("jobs", "show", write(rng, at, "job", rng.choice(corpus.jobs)))

    def clusters(rng: random.Random, at: Path) -> Ending:
        return command("clusters", "show", write(rng, at, "cluster", rng.choice(corpus.clusters)), "--json")

    def configure(rng: random.Random, at: Path) -> Ending:
        slots = str(rng.choice((0, -1, 1, 2, 7, 100, 10**9, "x")))
        return command("configure", "--instance", write(rng, at, "instance", INSTANCE), "--slots", slots, "--json")

    def scale(rng: random.Random, at: Path) -> Ending:
        return command("scale", write(rng, at, "rates", RATES), "--policy", rng.choice(POLICIES), "--json")

    def place(rng: random.Random, at: Path) -> Ending:
        graph, cluster = GRAPH, SMALL_CLUSTER
        wrong_graph = rng.random() < 0.7
        files = [write(rng, at, "graph", graph), str(at / "right-cluster.json")]
        (at / "right-cluster.json").write_text(json.dumps(cluster))
        if not wrong_graph:
            (at / "right-graph.json").write_text(json.dumps(graph))
            files = [str(at / "right-graph.json"), write(rng, at, "cluster", cluster)]
        policy = rng.choice(("caps", "default", "evenly", "random", "odrp"))
        options = rng.choice(
            ((), ("--count",), ("--thresholds", rng.choice(("cpu=0.5", "cpu=x", "io=nan", "=", "cpu=2"))))
        )
        verb = ("place", *files, "--policy", policy, *options) if rng.random() < 0.8 else ("tune", *files)
        return command(*verb, "--time-limit", "0.05", "--json")

    def fit(rng: random.Random, at: Path) -> Ending:
        path = at / "measurements.csv"
        path.write_bytes(mutated_table(rng, corpus.measurements))
        if rng.random() < 0.5:
            return command("fit", str(path), "--json")
        number = str(rng.choice((0, -1, 1, 1e3, 65536, "nan", "inf", 1e300)))
        return command("size", str(path), "--rate", "2500000", "--memory", number, "--json")

    def evaluate(rng: random.Random, at: Path) -> Ending:
        path = at / "workload.csv"
        path.write_bytes(mutated_table(rng, corpus.rates_table))
        return task(lambda: _workload(path))

    def plans(rng: random.Random, at: Path) -> Ending:
        folder = at / "workspace"
        shutil.rmtree(folder, ignore_errors=True)
        job = corpus.stored_plan["plan"]["job"]
        (folder / "plans" / job).mkdir(parents=True)
        document = mutated(rng, corpus.stored_plan)
        if rng.random() < 0.6 and isinstance(document, dict):
            with contextlib.suppress(ValueError, TypeError, RecursionError):
                document["digest"] = digest(document.get("plan"))  # tampered with by one who knows
        (folder / "plans" / job / "v000001.json").write_bytes(as_bytes(rng, document, "json"))
        if rng.random() < 0.5:
            (folder / "plans" / job / "v000002.json").write_text(json.dumps(corpus.stored_plan))
        verb = rng.choice(
            (
                ("show", job),
                ("show", f"{job}@1"),
                ("list",),
                ("diff", f"{job}@1"),
                ("rollback", f"{job}@1"),
                ("show", rng.choice(STRINGS)),
                *(("export", f"{job}@1", "--format", form) for form in FORMATS),
            )
        )
        return command("plans", *verb, "--workspace", str(folder), "--json")

    def request(rng: random.Random, at: Path) -> Ending:
        from sluice_airflow.tasks.planning import keep_request

        parameters = dict(PARAMETERS)
        if rng.random() < 0.4:
            parameters["job"] = write(rng, at, "job", rng.choice(corpus.jobs))
        elif rng.random() < 0.3:
            parameters["cluster"] = write(rng, at, "cluster", rng.choice(corpus.clusters))
        else:
            parameters = mutated(rng, parameters)
        if not isinstance(parameters, dict):
            parameters = {"job": parameters}
        return task(lambda: keep_request(parameters))

    def changes(rng: random.Random, at: Path) -> Ending:
        from sluice_airflow.tasks.replanning import rate_changes
        from sluice_airflow.tasks.thresholds import jobs_with_new_plans

        event = mutated(rng, {"job": "nexmark-q1", "rate": 1000.0, "uri": "file:///w/plans/nexmark-q1/v000001.json"})
        events = [event] if isinstance(event, dict) else []
        anything = rng.choice(rng.choice((STRINGS, NUMBERS, OTHERS)))
        parameters = {"job": anything} if rng.random() < 0.5 else {}
        if rng.random() < 0.5:
            return task(lambda: rate_changes(parameters, events, "a-dag-run"))
        return task(lambda: jobs_with_new_plans(parameters, events))

    def samples(rng: random.Random, at: Path) -> Ending:
        return task(lambda: _samples(rng, at))

    return [
        EntryPoint("sluice jobs FILE --json", 18, jobs),
        EntryPoint("sluice jobs FILE", 4, shown_job, is_json=False),
        EntryPoint("sluice clusters FILE", 10, clusters),
        EntryPoint("sluice configure", 10, configure),
        EntryPoint("sluice scale", 14, scale),
        EntryPoint("sluice place, tune", 6, place),
        EntryPoint("sluice fit, size", 6, fit),
        EntryPoint("sluice plans", 12, plans),
        EntryPoint("workload CSV", 5, evaluate),
        EntryPoint("task: request", 8, request),
        EntryPoint("task: rate changes, new plans", 4, changes),
        EntryPoint("samples in the workspace", 3, samples),
    ]


def _workload(path: Path) -> Any:
    from pipelines.arena.replays.workloads import read_workload

    return read_workload(path, "increasing").name


def _samples(rng: random.Random, folder: Path) -> int:
    """A samples file with wrong bytes, columns, types or values, read and checked as the stage `check` does."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    from models.metrics import SAMPLE_COLUMNS
    from pipelines.store.samples import read_samples, samples_key
    from pipelines.store.workspace import Workspace

    names = [column.name for column in SAMPLE_COLUMNS if column.name not in ("job", "run")]
    columns = {name: [rng.choice((1.0, 0.0, None, -1.0, float("nan"))) for _ in range(3)] for name in names}
    if rng.random() < 0.5:
        columns.pop(rng.choice(names))
    if rng.random() < 0.5:
        columns[rng.choice((*names, "job", "nonsense"))] = [rng.choice(("a", None)) for _ in range(3)]
    buffer = io.BytesIO()
    pq.write_table(pa.table(columns), buffer)
    content = buffer.getvalue()
    path = folder / "workspace" / samples_key("q", "r")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(damaged(rng, content) if rng.random() < 0.6 else content)
    return int(read_samples(Workspace(folder / "workspace"), "q", "r").num_rows)
