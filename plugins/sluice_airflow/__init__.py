"""What the DAGs share: assets, triggers, retries, turns and progress, and the embedded Airflow of `make plan`."""
