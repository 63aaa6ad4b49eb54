"""The assets that DAGs produce and react to. Private URI schemes begin with `x-` (AIP-60)."""

from airflow.sdk import Asset, AssetWatcher

from sluice_airflow.triggers import AutopilotTrigger, CalendarTrigger, ObservationTrigger, RateChangeTrigger

SAMPLES = Asset(name="sluice-samples", uri="x-sluice://samples", group="sluice")
"""Checked samples of a run."""
FEATURES = Asset(name="sluice-features", uri="x-sluice://features", group="sluice")
"""Checked per-operator features of a run."""
MODEL = Asset(name="sluice-model", uri="x-sluice://model", group="sluice")
"""A reviewed capacity model."""
PLAN = Asset(name="sluice-plan", uri="x-sluice://plan", group="sluice")
"""A new version of a job's plan."""
THRESHOLDS = Asset(name="sluice-thresholds", uri="x-sluice://thresholds", group="sluice")
"""A job's threshold table, tuned ahead of time."""
POLICIES = Asset(name="sluice-policies", uri="x-sluice://policies", group="sluice")
"""The scaling policy chosen for a job; an event's `extra` carries job, policy, version, reason and URI."""
RATE_CHANGE = Asset(
    name="sluice-rate-change",
    uri="x-sluice://rate-change",
    group="sluice",
    watchers=[
        AssetWatcher(name="sluice-rates", trigger=RateChangeTrigger()),
        AssetWatcher(name="sluice-calendars", trigger=CalendarTrigger()),
    ],
)
"""A job's source rate has changed, or will by its calendar; an event's `extra` carries
`{"job": NAME, "rate": RECORDS_PER_SECOND}`. Events of the triggers that follow rates and calendars carry it as `payload`, with
the evidence."""
OBSERVED = Asset(
    name="sluice-observed",
    uri="x-sluice://observed",
    group="sluice",
    watchers=[AssetWatcher(name="sluice-running-jobs", trigger=ObservationTrigger())],
)
"""Samples of a window of a running job are stored; an event's `payload` carries the job and what was seen."""
AUTOPILOT = Asset(
    name="sluice-autopilot",
    uri="x-sluice://autopilot",
    group="sluice",
    watchers=[AssetWatcher(name="sluice-autopilots", trigger=AutopilotTrigger())],
)
"""An autopilot has rescaled a job, failed to, needs permission to act, or its lateness budget is spent; an event's `payload`
is a `PilotEvent`."""
REPROFILE = Asset(name="sluice-reprofile", uri="x-sluice://reprofile", group="sluice")
"""Jobs need new measurements and new plans; an event's `extra` carries a list `requests`, or is one request: the job's name,
the URI of the request to repeat, the rate and the reason."""
