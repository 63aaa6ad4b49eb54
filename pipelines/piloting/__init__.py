"""The autopilots of all jobs whose file asks for one, in one process: Airflow's triggerer, or a service of its own."""
