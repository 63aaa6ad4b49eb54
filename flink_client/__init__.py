"""Client of a Flink cluster: REST interface, running jobs, metrics, restart, and the Kubernetes operator's resource."""
