"""The embedded Airflow of `make plan`: SQLite, no server, one DAG run; its stages run in a process beside it."""
