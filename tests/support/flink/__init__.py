"""Flink for tests: servers that answer as its REST interface does, and programs and checks for a real one."""
