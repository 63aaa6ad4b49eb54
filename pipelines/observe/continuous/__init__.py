"""Observing jobs for as long as Airflow runs: reading by reading, a file of samples for each window of time."""
