"""Plans for the Flink Kubernetes operator, through the API server."""
