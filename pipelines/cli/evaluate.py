"""`sluice evaluate`: hours of workload replayed under scaling policies, in seconds."""

from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.markup import escape

from models.errors import InvalidInput
from pipelines.arena.evaluation import Evaluation, evaluate
from pipelines.arena.on_spark import replay_on_spark
from pipelines.arena.ranking import Ranking, Standing
from pipelines.arena.request import EvaluationRequest
from pipelines.arena.scoring.scores import PolicyScore
from pipelines.cli import app
from pipelines.cli.extras import has, require
from pipelines.cli.options.from_request import request_options
from pipelines.cli.options.settings import settings_by_policy
from pipelines.cli.options.standard import JsonOption, WorkspaceOption
from pipelines.cli.output import console, print_json, progress_console
from pipelines.inputs.parsing.files import validate_as
from pipelines.progress import TerminalProgress
from pipelines.store.workspace import Workspace
from pipelines.terminal.tables import table

FIELDS = (
    "cluster", "seed", "seeds", "minutes", "burn_in_minutes", "peak_rate", "placement", "managed_memory_mb",
    "objective_s", "attainment",
)  # fmt: skip


@app.command(name="evaluate")
@request_options(EvaluationRequest, *FIELDS)
def evaluate_policies(
    fields: dict[str, Any],
    job: Annotated[str, typer.Option(metavar="JOB,...", help="Jobs of the catalogue, or job files.")],
    workload: Annotated[
        str,
        typer.Option(
            metavar="W,...",
            help="increasing, decreasing, cosine, random, steps, or a CSV file of rates (FILE.csv, FILE.csv:COLUMN).",
        ),
    ],
    policy: Annotated[
        str,
        typer.Option(
            metavar="P,...",
            help="Scaling policies to compare, each with the settings that its documentation recommends.",
        ),
    ],
    rescale_mode: Annotated[
        str, typer.Option(metavar="M,...", help="How rescales are made: in-place, savepoint, redeploy, or several.")
    ] = "in-place",
    start: Annotated[
        str,
        typer.Option(
            metavar="S,...",
            help="Initial deployments: well, under (half) or over (twice) provisioned; one replay with each.",
        ),
    ] = "well",
    sweep: Annotated[
        bool,
        typer.Option(
            "--sweep", help="Replay each policy at each value of its target knob, so that whole frontiers are compared."
        ),
    ] = False,
    settings: Annotated[
        list[str] | None, typer.Option("--set", metavar="POLICY.SETTING=VALUE", help="Setting of a policy; repeatable.")
    ] = None,
    processes: Annotated[
        int | None, typer.Option(min=1, help="Number of replays at a time; default: one for each core.")
    ] = None,
    spark: Annotated[
        bool, typer.Option("--spark", help="Replay as a Spark job, on $SLUICE_SPARK_MASTER or all cores.")
    ] = False,
    report: Annotated[Path | None, typer.Option(metavar="FILE", help="Write a copy of the HTML report here.")] = None,
    log: Annotated[
        bool | None, typer.Option(help="Log the evaluation to MLflow; default: if it is installed.", show_default=False)
    ] = None,
    workspace: WorkspaceOption = None,
    as_json: JsonOption = False,
) -> None:
    """Compare scaling policies on hours of simulated workload. A replay on the simulated cluster takes seconds."""
    given = fields | {
        "jobs": _names(job, "--job"),
        "workloads": _names(workload, "--workload"),
        "policies": _names(policy, "--policy"),
        "rescale_modes": _names(rescale_mode, "--rescale-mode"),
        "starts": _names(start, "--start"),
        "sweep": sweep,
        "settings": settings_by_policy(settings or []),
    }
    request = validate_as(given, EvaluationRequest, origin="the options")
    if report is not None and not report.absolute().parent.is_dir():
        raise InvalidInput(f"--report must be a file in a folder that exists, but {report.absolute().parent} does not")
    require(*(["mlflow"] if log else []), *(["spark"] if spark else []))
    log = has("mlflow") if log is None else log
    kept = Workspace(workspace)
    evaluation = evaluate(
        request, kept, TerminalProgress(progress_console), processes, replay_on_spark if spark else None
    )
    uri, report_uri = kept.uri(evaluation.results_key), _report(request, evaluation, kept, report)
    runs = _logged(request, evaluation, kept) if log else {}
    if as_json:
        print_json(_document(evaluation, uri) | {"report": report_uri, "mlflow_runs": runs})
    else:
        for ranking in evaluation.rankings:
            _print_ranking(ranking)
        _print_legend(request)
        _print_verdicts(evaluation)
        console.print(f"report: {escape(report_uri)}", soft_wrap=True)
        console.print(f"results of all replays: {escape(uri)}", soft_wrap=True)


def _report(request: EvaluationRequest, evaluation: Evaluation, workspace: Workspace, copy: Path | None) -> str:
    """Where the page is: in the workspace, and in the requested file."""
    # Plotly takes a second to import, which a refused request does not need.
    from pipelines.arena.report.page import write_report

    key = write_report(request, evaluation, workspace)
    if copy is None:
        return workspace.uri(key)
    copy.write_bytes(workspace.read_bytes(key))
    return copy.absolute().as_uri()


def _logged(request: EvaluationRequest, evaluation: Evaluation, workspace: Workspace) -> dict[str, str]:
    """MLflow run of each job."""
    from pipelines.arena.log import log_evaluation

    return log_evaluation(request, evaluation, workspace)


def _names(text: str, option: str) -> list[str]:
    names = [name.strip() for name in text.split(",")]
    if not all(names):
        raise InvalidInput(f"{option} must be names with commas between them, but got {text!r}")
    return names


def _document(evaluation: Evaluation, uri: str) -> dict[str, Any]:
    return {
        "verdicts": [
            {"rescale_mode": mode, "policy": found.policy, "order": list(found.order), "sentence": found.sentence}
            | {"difference": None if found.difference is None else asdict(found.difference)}
            for mode, found in evaluation.verdicts.items()
        ],
        "rankings": [_ranking_document(ranking) for ranking in evaluation.rankings],
        "cells": [
            {
                "job": one.cell.job.name,
                "workload": one.cell.workload.name,
                "policy": one.cell.policy,
                "seed": one.cell.seed,
                "rescale_mode": one.cell.rescale_mode,
                "start": one.cell.start,
                "settings": one.cell.settings,
                **one.outcome.model_dump(mode="json"),
                "rescale_log": [r.model_dump(mode="json") for r in one.rescales],
            }
            for one in evaluation.finished
        ],
        "results": uri,
    }


def _ranking_document(ranking: Ranking) -> dict[str, Any]:
    group = ranking.group
    return {
        "job": ranking.job,
        "workload": ranking.workload,
        "rescale_mode": ranking.rescale_mode,
        "objective_s": group.objective_s,
        "attainment": group.attainment,
        "winner": ranking.winner.policy,
        "reason": ranking.reason,
        "lower_bound_task_hours": ranking.bound_hours,
        "policies": [
            {
                "policy": score.policy,
                "knob": score.knob,
                "points": [asdict(point) for point in score.points],
                "frontier": [asdict(point) for point in score.front],
                "cost_at_equal_attainment": None if score.attained is None else asdict(score.attained),
                "hypervolume": score.hypervolume,
                "hypervolume_rank": score.hypervolume_rank,
                "run_with": score.best.value,
            }
            for score in group.policies
        ],
    }


def _print_legend(request: EvaluationRequest) -> None:
    objectives = " or ".join(f"{request.objective_of(mode)} s ({mode})" for mode in request.rescale_modes)
    console.print(
        f"cost: task-hours where {100 * request.attainment:.4g} % of records are within {objectives}, - if no setting holds "
        "that; gap: of the cost to a proved lower bound; rank: by hypervolume; knob: the setting to run, with its figures"
    )


def _print_verdicts(evaluation: Evaluation) -> None:
    """Over all jobs and workloads, if there is more than one."""
    several = len(evaluation.verdicts) > 1
    if len(evaluation.rankings) > len(evaluation.verdicts):
        for mode, found in evaluation.verdicts.items():
            console.print(f"[bold]{f'{mode}: ' if several else ''}{escape(found.sentence)}[/bold]", soft_wrap=True)


def _print_ranking(ranking: Ranking) -> None:
    first = ranking.winner
    seeds = f", means of {first.seeds} seeds" if first.seeds > 1 else ""
    console.print(f"[bold]{escape(ranking.name)}[/bold]{seeds}")
    headings = ["cost", "gap", "rank", "knob", "late", "p95 s", "task-h", "GiB-h", "rescales"]
    converges = any(s.convergence_steps or s.convergence_s is not None for s in ranking.standings)
    resting = ["rest s"] if converges else []
    rows = table("", "policy", *headings, *resting, text=("policy",))
    for score, standing in ranking.scored:
        mark = "*" if standing is first else "" if standing.holds else "late"
        row = _row(score, ranking.gap(score), standing)
        if converges:
            never = "not" if standing.convergence_s is None else f"{standing.convergence_s:,.0f}"
            row.append(never)
        rows.add_row(mark, standing.policy, *row)
    console.print(rows)
    console.print(f"* {escape(ranking.reason)}", soft_wrap=True)


def _row(score: PolicyScore, gap: float | None, standing: Standing) -> list[str]:
    return [
        "-" if score.attained is None else f"{score.attained.task_hours:,.1f}",
        "-" if gap is None else f"{gap:.0%}",
        str(score.hypervolume_rank),
        f"{standing.value:g}",
        f"{standing.late_share:.2%}",
        _seconds(standing.latency_p95_s),
        f"{standing.task_hours:,.1f}",
        f"{standing.memory_gib_hours:,.1f}",
        f"{standing.rescales:.3g}",
    ]


def _seconds(value: float | None) -> str:
    if value is None:
        return "-"
    return f"{value:,.1f}" if value < 100 else f"{value:,.0f}"
