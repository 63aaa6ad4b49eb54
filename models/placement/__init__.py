"""Placement: on which worker each task runs (CAPSys)."""
