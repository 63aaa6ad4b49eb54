"""The data pipeline on Spark: schemas, session, and the jobs from samples to features."""
