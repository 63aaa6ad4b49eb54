"""Stage `profile`: each operator on a worker of its own, below saturation (CAPSys section 5.1).

A real cluster has no spare workers, so there the operators share those of the testbed.
"""

from pydantic import Field

from models.capacity.observation import OperatorRates
from models.job import Job
from models.plan.parts import Placement
from models.schema import Format, NonNegative, Positive
from models.wording import amount
from pipelines.measuring.estimate import operator_rates, samples_of, source_rates_per_task
from pipelines.measuring.testbeds import Measuring, measuring, measuring_inputs, opened_profiling_testbed
from pipelines.run import PipelineRun
from pipelines.store.samples import samples_flaw, write_samples
from testbeds.protocol import Configuration, MeasuredWindow, Run
from testbeds.repeating import measured

PROFILE_FILE = "profile.json"
PROFILE_SHARE = 0.5
"""Share of the saturated rate for the profile: without backpressure, but enough for each operator to be measurable."""
PROBE_RATE = 1e9
"""Far beyond the capacity of any single-task configuration; sources emit as much as backpressure allows."""


class ProfileRecord(Format):
    """The figures of the profile; `features` reads the unit costs from its samples."""

    run: str = Field(description="Run whose samples hold the profile.")
    saturated_rate: Positive = Field(description="Records/s that one task of each operator took under overload.")
    profiled_rate: Positive = Field(description="Records/s at which the profile was taken.")
    operators: tuple[OperatorRates, ...] = Field(description="Input of BIDS2, measured below saturation.")
    source_rate_per_task: dict[str, Positive] = Field(description="True rate of one task of each source, records/s.")
    measured_s: NonNegative = Field(description="Time on the testbed, seconds.")
    samples_digest: str = Field(description="SHA-256 of the file with the samples of `run`, in hex.")


def profile(run: PipelineRun) -> str:
    """Profile the job; returns the URI of `profile.json`."""
    key = run.key(PROFILE_FILE)
    record = run.workspace.once(
        key,
        measuring_inputs(run),
        ProfileRecord,
        lambda: _measure(run),
        lambda kept: samples_flaw(run.workspace, run.job.name, kept.run, kept.samples_digest),
    )
    run.progress.say(f"profile: one task of each operator saturates at {amount(record.saturated_rate)} records/s")
    return run.workspace.uri(key)


def _measure(run: PipelineRun) -> ProfileRecord:
    name = f"{run.run_id}-profile"
    how = measuring(run)
    with opened_profiling_testbed(run) as testbed:
        configuration = Configuration(
            parallelism={o.name: 1 for o in run.job.operators},
            memory_mb=testbed.limits.memory_levels_mb[-1],
            placement=_isolating_placement(run.job) if how.isolated else None,
        )
        windows, elapsed = measured(
            testbed,
            run.job,
            configuration,
            lambda deployed: (_windows(deployed, how), deployed.elapsed_s),
            run=name,
            seed=run.request.seed,
            say=run.progress.say,
        )
    digests = write_samples(run.workspace, samples_of(windows))
    warmup, _, window = windows
    return ProfileRecord(
        run=name,
        saturated_rate=warmup.achieved_rate,
        profiled_rate=window.target_rate,
        operators=operator_rates(run.job, window.samples),
        source_rate_per_task=source_rates_per_task(run.job, window.samples),
        measured_s=elapsed,
        samples_digest=digests[name],
    )


def _windows(deployed: Run, how: Measuring) -> list[MeasuredWindow]:
    """Warm-up at a rate that is too high, then settling and the profile at a share of the rate that was achieved."""
    warmup = deployed.inject(PROBE_RATE, how.mst.warmup_s, "warmup")
    rate = PROFILE_SHARE * warmup.achieved_rate
    return [warmup, *(deployed.inject(rate, how.profile_s, phase) for phase in ("ramp", "profile"))]


def _isolating_placement(job: Job) -> Placement:
    return {f"profile-{o.name}": {o.name: 1} for o in job.operators}
