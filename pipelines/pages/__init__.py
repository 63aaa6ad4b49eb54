"""The content of the plan pages in Airflow, read from the workspace. Nothing here writes, measures or queries a server."""
