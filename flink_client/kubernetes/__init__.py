"""FlinkDeployments of the Flink Kubernetes operator: the API server, what a resource states, what to change, how far it is."""
