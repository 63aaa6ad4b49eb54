"""The autopilot: a scaling policy acts on a running job, within limits, and every decision is recorded."""
