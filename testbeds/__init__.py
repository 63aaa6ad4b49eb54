"""Testbeds measure a job: one protocol, several implementations, one conformance suite."""
