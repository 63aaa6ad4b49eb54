"""Reading and validating what users write: catalogue, programs, measurements, operations."""
