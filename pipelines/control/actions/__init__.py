"""Rescaling a running job so that a process killed at any step leaves nothing half done."""
