"""The plan pages in Airflow: routes, templates and access checks. Content comes from `pipelines.pages` and Airflow."""
