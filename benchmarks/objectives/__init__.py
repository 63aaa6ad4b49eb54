"""Plans for objectives, and whether a real Flink keeps what they promise."""
