"""What the page of a job's calendar shows: the schedule, its changes, events and freezes, and what it costs and saves."""
