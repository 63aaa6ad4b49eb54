"""Plans for the Flink Kubernetes operator: through the API server, or through a git repository that is deployed from."""
