"""The pages of plans in Airflow: routes and templates. What they show is read by `pipelines.pages`, or from Airflow."""
