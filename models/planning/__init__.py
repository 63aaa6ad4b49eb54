"""From a job's measurements to the content of its plan: pure decisions, without I/O."""
