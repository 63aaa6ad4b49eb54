"""How a running Airflow copes: from a change of the rate to a plan, and hundreds of jobs."""
