"""Following the source rates of jobs that have a plan: an event for each rate change, once."""
