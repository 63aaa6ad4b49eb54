"""What the DAGs share: the assets, how a task runs a stage, and the embedded Airflow of `make plan`."""
