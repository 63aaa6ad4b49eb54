"""Key distributions: from recorded streams, on Spark."""
