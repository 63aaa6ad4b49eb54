"""`sluice autopilot`: a scaling policy acts on a running job, within limits."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperGroup

from models.errors import InvalidInput, SluiceError
from pipelines.cli import app
from pipelines.cli.extras import require
from pipelines.cli.options.duration import seconds_of
from pipelines.cli.options.standard import (
    ContextOption,
    JsonLinesOption,
    JsonOption,
    KafkaOption,
    NameOption,
    TokenVariableOption,
    WorkspaceOption,
    account,
)
from pipelines.cli.output import console, print_json, print_json_line, progress_console
from pipelines.cli.running_jobs.autopilot_options import autopilot_request, control_limits, deployment_target

if TYPE_CHECKING:
    from pipelines.control.record import AutopilotDecision


class _RunByDefault(TyperGroup):
    """`sluice autopilot JOB ...` is `sluice autopilot run JOB ...`."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        if args and args[0] not in self.commands and not args[0].startswith("-"):
            args = ["run", *args]
        return super().resolve_command(ctx, args)


autopilot = typer.Typer(
    cls=_RunByDefault,
    help="Let a scaling policy act on a running job, within limits.",
    no_args_is_help=True,
    rich_markup_mode=None,
)
app.add_typer(autopilot, name="autopilot")

JobArgument = Annotated[str, typer.Argument(metavar="JOB", help="Flink's name or id of the job.")]
NamedJobArgument = Annotated[str, typer.Argument(metavar="JOB", help="The job, as its autopilot calls it.")]
FlinkOption = Annotated[
    str,
    typer.Option(
        metavar="URL|CLUSTER",
        help="Flink that runs the job: its REST address, connection:NAME, or a cluster (file) with one.",
    ),
]
LimitOption = Annotated[
    list[str] | None,
    typer.Option(
        "--limit",
        metavar="LIMIT=VALUE",
        help="A limit, repeatable: most_tasks, most_slots, price_per_slot_hour, dollars_per_hour, rescales_a_day, "
        "least_between_s, respect_s, ... (all of them: 'Let a policy scale a running job' in the documentation).",
        show_default=False,
    ),
]


@autopilot.command()
def run(
    job: JobArgument,
    flink: FlinkOption,
    policy: Annotated[
        str, typer.Option(metavar="P", help="The scaling policy, as `sluice scale` names it.")
    ] = "sluice",
    settings: Annotated[
        list[str] | None, typer.Option("--set", metavar="SETTING=VALUE", help="A setting of the policy; repeatable.")
    ] = None,
    limit: LimitOption = None,
    freeze: Annotated[
        list[str] | None,
        typer.Option(
            metavar="HH:MM-HH:MM", help="Rescale nothing in this time of the day, UTC; repeatable.", show_default=False
        ),
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Record what it would do, and change nothing.")] = False,
    name: Annotated[
        str | None,
        typer.Option(
            "--as",
            metavar="NAME",
            help="Name of the job in the workspace; default: made from Flink's.",
            show_default=False,
        ),
    ] = None,
    kubernetes: Annotated[
        str | None,
        typer.Option(
            metavar="NAMESPACE/NAME",
            help="FlinkDeployment that deploys the job, to change through the Kubernetes API.",
            show_default=False,
        ),
    ] = None,
    context: ContextOption = None,
    through: Annotated[
        str,
        typer.Option(
            metavar="operator|rest",
            help="With --kubernetes: change the resource, and let the operator rescale the job; or let Flink rescale it, and "
            "then write the tasks into the resource, so that the operator keeps them.",
        ),
    ] = "operator",
    program: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="File with jar, entry_class and arguments, where rescaling takes a restart.",
            show_default=False,
        ),
    ] = None,
    timeout: Annotated[float, typer.Option(metavar="SECONDS", min=1, help="Time for a rescale to come about.")] = 60.0,
    duration: Annotated[
        str | None, typer.Option("--for", metavar="TIME", help="End after this time: 90s, 3m, 1h.", show_default=False)
    ] = None,
    kafka: KafkaOption = None,
    token_variable: TokenVariableOption = None,
    workspace: WorkspaceOption = None,
    as_json: JsonLinesOption = False,
) -> None:
    """Observe a running job, and rescale it as the policy decides. Ctrl-C ends it; the job keeps running as it is."""
    from flink_client.rest.client import FlinkRest
    from pipelines.control.actions.deployment import JobDeployment, checked_owner
    from pipelines.control.autopilot import Autopilot
    from pipelines.control.running import fly
    from pipelines.control.wording import line
    from pipelines.measuring.flink import named_address
    from pipelines.observe.log_ends import BrokerLogEnds
    from pipelines.store.workspace import Workspace

    url = named_address(flink).rest_url
    place = Workspace(workspace)
    target = deployment_target(kubernetes, context, through, program)
    request = autopilot_request(
        job, name, url, policy, settings, control_limits(limit, freeze), dry_run, timeout, program, target
    )

    unseen: str | None = None
    has_seen = has_advised = False

    def show(decision: "AutopilotDecision") -> None:
        nonlocal unseen, has_seen, has_advised
        has_seen |= decision.seen.tasks is not None
        if loop.estimates_lag and not has_advised:
            has_advised = True
            _say(
                "autopilot: what waits in Kafka is estimated by what its consumers have fetched and how old the records are "
                "that are read; --kafka HOST:PORT has the broker count it"
            )
        unseen = None if has_seen else decision.reason
        print_json_line(decision) if as_json else console.print(line(decision), markup=False, soft_wrap=True)

    with FlinkRest(url, timeout_s=10.0, patience_s=0.0, token_variable=token_variable) as rest:
        if (remark := checked_owner(rest, target)) is not None:
            _say(f"autopilot: {remark}")
        if target is not None:
            require("kubernetes")
            JobDeployment(target).check(acts=not dry_run)
        loop = Autopilot(place, request, rest, log_ends=None if kafka is None else BrokerLogEnds(kafka))
        mode = "dry run of " if dry_run else ""
        where = url if target is None else f"{url} (FlinkDeployment {target.reference})"
        _say(f"autopilot: {mode}policy {policy} for {request.job} on {where}, every {loop.every_s:g} s; Ctrl-C ends it")
        with _stopped(None if duration is None else seconds_of(duration, 1.0)) as stop:
            fly(loop, show, stop, say=_say)
    if unseen is not None:
        raise SluiceError(f"the autopilot of {request.job} ended without having seen it run: {unseen}")
    _say(f"autopilot: ended; {request.job} keeps running as it is")


@autopilot.command()
def stop(
    job: NamedJobArgument,
    reason: Annotated[str, typer.Option(help="Why; recorded.")] = "",
    by: NameOption = None,
    workspace: WorkspaceOption = None,
    json: JsonOption = False,
) -> None:
    """Keep the autopilot of a job from rescaling it, at once and until it is started again."""
    from pipelines.control.files import AutopilotFiles, StopSwitch
    from pipelines.store.workspace import Workspace

    files = AutopilotFiles(Workspace(workspace), _known(job, workspace))
    asked = StopSwitch(job=job, by=by or account(), reason=reason, stopped_at=datetime.now(UTC))
    switch = files.stop(asked)
    if switch != asked:
        because = f" ({switch.reason})" if switch.reason else ""
        _say(f"autopilot: {job} had been stopped before{because}, which stays; `sluice autopilot start {job}` ends it")
    print_json(switch) if json else console.print(
        f"{job}: stopped by {switch.by} at {switch.stopped_at:%F %T} UTC", markup=False
    )


@autopilot.command()
def start(job: NamedJobArgument, workspace: WorkspaceOption = None, json: JsonOption = False) -> None:
    """Let the autopilot of a job act again that was stopped."""
    from pipelines.control.files import AutopilotFiles
    from pipelines.store.workspace import Workspace

    was = AutopilotFiles(Workspace(workspace), _known(job, workspace)).resume()
    said = f"{job}: its autopilot may act again" if was else f"{job}: its autopilot was not stopped"
    print_json({"job": job, "was_stopped": was}) if json else console.print(said, markup=False)


@autopilot.command()
def log(
    job: NamedJobArgument,
    since: Annotated[
        str | None, typer.Option(metavar="TIME", help="Only the last 90s, 3m, 1h, ...", show_default=False)
    ] = None,
    workspace: WorkspaceOption = None,
    as_json: JsonLinesOption = False,
) -> None:
    """Show the recorded decisions of a job's autopilot, the first one first."""
    from pipelines.control.files import AutopilotFiles
    from pipelines.control.wording import line
    from pipelines.store.workspace import Workspace

    files = AutopilotFiles(Workspace(workspace), _known(job, workspace))
    begin = None if since is None else datetime.now(UTC) - timedelta(seconds=seconds_of(since, 1.0))
    decision = None
    for decision in files.decisions(since=begin):
        print_json_line(decision) if as_json else console.print(line(decision), markup=False, soft_wrap=True)
    if decision is None:
        _say(f"autopilot: no decision was recorded for {job}{'' if since is None else f' in the last {since}'}")


def _known(job: str, workspace: str | None) -> str:
    """Raises InvalidInput: the job has no autopilot."""
    from pipelines.control.files import autopilot_jobs
    from pipelines.store.workspace import Workspace

    jobs = autopilot_jobs(Workspace(workspace))
    if job not in jobs:
        raise InvalidInput(
            f"no autopilot has run for {job!r:.80} in this workspace; there are {', '.join(jobs) or 'none'}"
        )
    return job


@contextmanager
def _stopped(seconds: float | None) -> Iterator[threading.Event]:
    """An event that Ctrl-C, SIGTERM or the end of the time sets; a round that is under way is finished."""
    import signal

    stop = threading.Event()
    before = {one: signal.signal(one, lambda *_: stop.set()) for one in (signal.SIGINT, signal.SIGTERM)}
    timer = None if seconds is None else threading.Timer(seconds, stop.set)
    try:
        if timer is not None:
            timer.daemon = True
            timer.start()
        yield stop
    finally:
        if timer is not None:
            timer.cancel()
        for one, handler in before.items():
            signal.signal(one, handler)


def _say(what: str) -> None:
    progress_console.print(what, markup=False, soft_wrap=True)
