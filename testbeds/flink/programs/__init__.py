"""Programs for Flink: SQL scripts, jars, and operators with stated costs."""
