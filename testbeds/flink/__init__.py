"""Apache Flink as a testbed: a cluster is started or found, fed with records at a set rate, and measured."""
