"""Code shared by the DAGs: assets, triggers, retries, turns and progress, and the embedded Airflow of `make plan`."""
