"""Records for the sources of a job: rates that are set, recorded files, and a durable log."""
