"""`sluice jobs` and `sluice clusters`: what the catalogue holds, and what a file of one's own is read as."""

from typing import Annotated, Any

import typer
from rich.markup import escape
from rich.table import Table

from models.cluster import Cluster
from models.job import Job, records_in_per_source_record
from models.program import Program
from pipelines.catalogue import cluster_names, job_names, load_cluster, load_job_file
from pipelines.cli import app
from pipelines.cli.output import JsonOption, console, print_json

GIB, MEGA = 1024.0, 1e6
"""MiB in a GiB; and a million."""


@app.command()
def jobs(
    name: Annotated[str | None, typer.Argument(metavar="[JOB]", help="Show this job: a name, or a file.")] = None,
    json: JsonOption = False,
) -> None:
    """List the jobs of the catalogue, or show one with its operators and figures. Checks a file of your own, too."""
    if name is not None:
        shown = load_job_file(name)
        if isinstance(shown, Program):
            print_json(shown) if json else _show_program(shown)
        else:
            print_json(_as_file(shown)) if json else _show_job(shown)
        return
    found = [load_job_file(known) for known in job_names()]
    if json:
        print_json([_job_summary(job) for job in found])
        return
    table = Table(box=None)
    for heading in ("job", "operators", "stateful", "what it does"):
        table.add_column(heading, justify="right" if heading in ("operators", "stateful") else "left")
    for job in found:
        summary = _job_summary(job)
        counts = ["" if summary[name] is None else str(summary[name]) for name in ("operators", "stateful")]
        table.add_row(job.name, *counts, escape(job.description))
    console.print(table)


@app.command()
def clusters(
    name: Annotated[
        str | None, typer.Argument(metavar="[CLUSTER]", help="Show this cluster: a name, or a file.")
    ] = None,
    json: JsonOption = False,
) -> None:
    """List the clusters of the catalogue, or show the workers of one. Checks a file of your own, too."""
    if name is not None:
        cluster = load_cluster(name)
        print_json(cluster) if json else _show_cluster(cluster)
        return
    found = [load_cluster(known) for known in cluster_names()]
    if json:
        print_json([_cluster_summary(cluster) for cluster in found])
        return
    table = Table(box=None)
    for heading in ("cluster", "workers", "slots", "what it is"):
        table.add_column(heading, justify="right" if heading in ("workers", "slots") else "left")
    for cluster in found:
        table.add_row(cluster.name, str(len(cluster.workers)), str(cluster.slots), escape(cluster.description))
    console.print(table)


def _as_file(job: Job) -> dict[str, Any]:
    """The job with all that its file says."""
    operations = None if job.operations is None else job.operations.model_dump(mode="json")
    return job.model_dump(mode="json", by_alias=True) | {"operations": operations}


def _job_summary(job: Job | Program) -> dict[str, Any]:
    """The operators of a program are not known before Flink has planned it."""
    of_operators: dict[str, Any] = {"operators": None, "stateful": None, "figures_from": None}
    if isinstance(job, Job):
        of_operators = {
            "operators": len(job.operators),
            "stateful": sum(o.state is not None for o in job.operators),
            "figures_from": job.figures_from,
        }
    return {"name": job.name, "description": job.description, **of_operators}


def _cluster_summary(cluster: Cluster) -> dict[str, Any]:
    return {
        "name": cluster.name,
        "description": cluster.description,
        "workers": len(cluster.workers),
        "slots": cluster.slots,
    }


def _show_job(job: Job) -> None:
    console.print(escape(f"{job.name}: {job.description}"))
    console.print(escape(f"Figures from: {job.figures_from}"))
    table = Table(box=None)
    table.add_column("operator", no_wrap=True)
    table.add_column("from", overflow="fold")
    for heading in ("records in", "CPU µs", "out per in", "state B", "bytes out"):
        table.add_column(heading, justify="right")
    ratio = records_in_per_source_record(job)
    for name in job.order:
        operator, cost = job.operator(name), job.operator(name).cost
        table.add_row(
            name,
            "\n".join(f"{e.upstream} ({e.partitioning})" for e in job.upstream_edges(name)),
            f"{ratio[name]:.4g}",
            f"{cost.cpu_s * MEGA:.4g}",
            f"{operator.selectivity:.4g}",
            f"{cost.state_read_bytes + cost.state_write_bytes:g}",
            f"{cost.bytes_out:g}",
        )
    console.print(table)
    console.print("records in: per record that the sources emit; CPU and state: per record in; bytes: per record out.")
    for operator in job.operators:
        console.print(escape(f"{operator.name}: {operator.figures_from}"), soft_wrap=True)


def _show_program(program: Program) -> None:
    console.print(escape(f"{program.name}: {program.description}" if program.description else program.name))
    what = program.sql or f"{program.entry_class} of {program.jar} {' '.join(program.arguments)}".rstrip()
    console.print(escape(f"Runs {what} on Flink, which says what its operators are."))
    for name, table in program.tables.items():
        console.print(escape(f"{name}: replayed from {table.file}"))


def _show_cluster(cluster: Cluster) -> None:
    console.print(escape(f"{cluster.name}: {cluster.description}" if cluster.description else cluster.name))
    table = Table(box=None)
    table.add_column("workers")
    for heading in ("slots", "cores", "memory GiB", "state access MB/s", "network MB/s"):
        table.add_column(heading, justify="right")
    kinds: dict[tuple[Any, ...], list[str]] = {}
    for worker in cluster.workers:
        kinds.setdefault((worker.slots, worker.cores, worker.memory_mb, worker.io, worker.net), []).append(worker.name)
    for (slots, cores, memory_mb, io, net), names in kinds.items():
        span = names[0] if len(names) == 1 else f"{len(names)}: {names[0]} ... {names[-1]}"
        capacities = [(cores, 1.0), (memory_mb, GIB), (io, MEGA), (net, MEGA)]
        table.add_row(escape(span), str(slots), *(_amount(value, unit) for value, unit in capacities))
    console.print(table)


def _amount(value: float | None, unit: float) -> str:
    return "no limit" if value is None else f"{value / unit:g}"
