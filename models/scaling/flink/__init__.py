"""The autoscaler of the Flink Kubernetes operator, as a policy."""
