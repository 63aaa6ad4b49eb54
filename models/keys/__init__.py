"""Which task a key's records go to, as Flink decides it, and what a stream's keys look like: heavy hitters, tail, change."""
