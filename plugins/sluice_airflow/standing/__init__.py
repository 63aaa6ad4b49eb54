"""The standing Airflow of `make airflow`: its components on one machine, on SQLite, supervised and private to one user."""
