"""The MST of a job that reads a log: from the lag that its consumer group has, as records are fed or drained."""
