"""What the testbed measures on a real Flink and Kafka: MST, calibration, placement, and rescales."""
