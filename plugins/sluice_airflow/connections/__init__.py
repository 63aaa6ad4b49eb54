"""Connections of Airflow to Flink, Prometheus and Kafka: types with forms, hooks with a test, and the look-up of job files."""
