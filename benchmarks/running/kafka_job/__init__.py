"""A job that reads Kafka, made slow on purpose: the kinds of it, its jar, and where it runs."""
