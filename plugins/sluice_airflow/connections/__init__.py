"""Connections of Airflow to Flink, Prometheus, Kafka, MLflow and Kubernetes: types with forms, hooks with a test, and the
look-up of job files.
"""
