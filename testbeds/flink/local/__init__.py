"""A Flink cluster as processes of this machine: its distribution, the Java kit, how they are started and stopped."""
