"""A real Apache Flink as a testbed: its distribution, a local cluster, what runs on it, and its REST interface."""
