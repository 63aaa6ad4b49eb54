"""A sample of a topic as a Parquet file."""
