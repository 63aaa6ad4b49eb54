"""`sluice jobs` and `sluice clusters`: list and show the catalogue, and check files."""

from typing import Annotated, Any

import typer
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from models.cluster import Cluster, Worker, WorkerOffer
from models.job import Job, records_in_per_source_record
from models.resources.price import in_words
from pipelines.cli.commands import COMMANDS, app
from pipelines.cli.options.standard import JsonOption
from pipelines.cli.output import console, print_json
from pipelines.inputs.catalogue import cluster_names, job_names, load_cluster_or_offer, load_job_file
from pipelines.inputs.job_files import ClusterFile, JobFile, ProgramFile
from pipelines.terminal.tables import table

GIB, MEGA = 1024.0, 1e6
"""MiB per GiB; one million."""


jobs = typer.Typer(help=COMMANDS["jobs"].summary, no_args_is_help=True, rich_markup_mode=None)
clusters = typer.Typer(help=COMMANDS["clusters"].summary, no_args_is_help=True, rich_markup_mode=None)
app.add_typer(jobs, name="jobs")
app.add_typer(clusters, name="clusters")


@jobs.command("list")
def list_jobs(json: JsonOption = False) -> None:
    """List the jobs of the catalogue."""
    found = [_job_summary(load_job_file(name)) for name in job_names()]
    if json:
        print_json({"jobs": found})
    else:
        console.print(_overview("job", ("operators", "stateful"), found))


@jobs.command("show")
def show_job(
    name: Annotated[str, typer.Argument(metavar="JOB", help="Job of the catalogue, or path of a job file.")],
    json: JsonOption = False,
) -> None:
    """Show a job with its operators and their costs. A file is checked as well."""
    job = load_job_file(name)
    if isinstance(job, ProgramFile):
        print_json(job) if json else _show_program(job)
    else:
        print_json(_as_file(job)) if json else _show_job(job)


@clusters.command("list")
def list_clusters(json: JsonOption = False) -> None:
    """List the clusters of the catalogue."""
    found = [_cluster_summary(load_cluster_or_offer(name)) for name in cluster_names()]
    if json:
        print_json({"clusters": found})
    else:
        console.print(_overview("cluster", ("workers", "slots"), found))


@clusters.command("show")
def show_cluster(
    name: Annotated[
        str, typer.Argument(metavar="CLUSTER", help="Cluster of the catalogue, or path of a cluster file.")
    ],
    json: JsonOption = False,
) -> None:
    """Show the workers of a cluster, or the kinds that it offers. A file is checked as well."""
    cluster = load_cluster_or_offer(name)
    print_json(_cluster_as_file(cluster)) if json else _show_cluster(cluster)


def _overview(kind: str, counts: tuple[str, str], summaries: list[dict[str, Any]]) -> Table:
    """One row for each summary, with its counts and its description."""
    rows = table(kind, *counts, "description", wrap=("description",))
    for summary in summaries:
        shown = ("" if summary[count] is None else str(summary[count]) for count in counts)
        rows.add_row(Text(summary["name"]), *shown, Text(summary["description"], no_wrap=True, overflow="ellipsis"))
    return rows


def _as_file(job: JobFile) -> dict[str, Any]:
    """The job with the content of its file."""
    operations = None if job.operations is None else job.operations.model_dump(mode="json")
    return job.model_dump(mode="json", by_alias=True) | {"operations": operations}


def _cluster_as_file(cluster: ClusterFile | WorkerOffer) -> dict[str, Any]:
    """The cluster with the content of its file."""
    running = cluster.flink if isinstance(cluster, ClusterFile) else None
    address = {} if running is None else {"flink": running.model_dump(mode="json")}
    return cluster.model_dump(mode="json", by_alias=True) | address


def _job_summary(job: Job | ProgramFile) -> dict[str, Any]:
    """A program, whose operators are unknown until Flink has planned it."""
    of_operators: dict[str, Any] = {"operators": None, "stateful": None, "figures_from": None}
    if isinstance(job, Job):
        of_operators = {
            "operators": len(job.operators),
            "stateful": sum(o.state is not None for o in job.operators),
            "figures_from": job.figures_from,
        }
    return {"name": job.name, "description": job.description, **of_operators}


def _cluster_summary(cluster: Cluster | WorkerOffer) -> dict[str, Any]:
    """Where kinds are offered, the number of workers is the plan's."""
    workers, slots = (len(cluster.workers), cluster.slots) if isinstance(cluster, Cluster) else (None, None)
    return {"name": cluster.name, "description": cluster.description, "workers": workers, "slots": slots}


def _show_job(job: Job) -> None:
    console.print(escape(f"{job.name}: {job.description}"))
    console.print(escape(f"Figures from: {job.figures_from}"))
    rows = table("operator", "from", "in", "CPU µs", "out/in", "state B", "out B", wrap=("from",))
    ratio = records_in_per_source_record(job)
    for name in job.order:
        operator, cost = job.operator(name), job.operator(name).cost
        rows.add_row(
            name,
            "\n".join(
                f"{e.upstream} ({e.partitioning})".removesuffix(" (rebalance)") for e in job.upstream_edges(name)
            ),
            f"{ratio[name]:.4g}",
            f"{cost.cpu_s * MEGA:.4g}" + (f" + {cost.external_wait_s * MEGA:.4g}" if cost.external_wait_s else ""),
            f"{operator.selectivity:.4g}",
            f"{cost.state_read_bytes + cost.state_write_bytes:g}",
            f"{cost.bytes_out:g}",
        )
    console.print(rows)
    console.print(
        "from: rebalanced, unless stated; in: records per record of the sources; CPU, + waits outside the job, and "
        "state: per record in; out B: bytes per record out.",
        soft_wrap=True,
    )
    for vertex in job.deployed_vertices if job.vertices else ():
        group = "slots of its own" if vertex.slot_sharing_group is None else f"group {vertex.slot_sharing_group}"
        console.print(escape(f"vertex {' -> '.join(vertex.operators)}: {group}"), soft_wrap=True)
    for operator in job.operators:
        console.print(escape(f"{operator.name}: {operator.figures_from}"), soft_wrap=True)


def _show_program(program: ProgramFile) -> None:
    console.print(escape(f"{program.name}: {program.description}" if program.description else program.name))
    what = program.sql or f"{program.entry_class} of {program.jar} {' '.join(program.arguments)}".rstrip()
    console.print(escape(f"Runs {what} on Flink, whose plan defines the operators."))
    for name, recorded in program.tables.items():
        console.print(escape(f"{name}: replayed from {recorded.file}"))


def _show_cluster(cluster: Cluster | WorkerOffer) -> None:
    console.print(escape(f"{cluster.name}: {cluster.description}" if cluster.description else cluster.name))
    alike = _kinds(cluster) if isinstance(cluster, WorkerOffer) else _alike(cluster)
    priced = any(worker.price_per_hour is not None for _, worker in alike)
    columns = ("slots", "cores", "memory GiB", "state access MB/s", "network MB/s", *["USD/h"] * priced)
    rows = table("workers", *columns, wrap=("workers",))
    for span, worker in alike:
        capacities = [(worker.cores, 1.0), (worker.memory_mb, GIB), (worker.io, MEGA), (worker.net, MEGA)]
        price = "unknown" if worker.price_per_hour is None else in_words(worker.price_per_hour)
        shown = [str(worker.slots), *(_amount(value, unit) for value, unit in capacities), *[price] * priced]
        rows.add_row(escape(span), *shown)
    console.print(rows)


def _kinds(offer: WorkerOffer) -> list[tuple[str, Worker]]:
    return [(f"{k.name}, {'any number' if k.count is None else f'at most {k.count}'}", k) for k in offer.kinds]


def _alike(cluster: Cluster) -> list[tuple[str, Worker]]:
    """The names of equal workers, and one of them."""
    kinds: dict[Worker, list[str]] = {}
    for worker in cluster.workers:
        kinds.setdefault(worker.model_copy(update={"name": "any"}), []).append(worker.name)
    return [
        (names[0] if len(names) == 1 else f"{len(names)}: {names[0]} ... {names[-1]}", worker)
        for worker, names in kinds.items()
    ]


def _amount(value: float | None, unit: float) -> str:
    return "no limit" if value is None else f"{value / unit:g}"
