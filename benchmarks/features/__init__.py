"""Features and key distributions extracted by Spark, beside other libraries."""
