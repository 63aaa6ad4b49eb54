"""Flink on Kubernetes for tests: API servers, the resource and the repository that deploy a job, and its operator."""
