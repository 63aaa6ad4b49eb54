"""Apache Kafka as a testbed: a broker is started or found, and its topics are fed at a set rate and watched."""
