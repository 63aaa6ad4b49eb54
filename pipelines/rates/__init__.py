"""Following the source rates of jobs that have a plan, and telling each change once."""
