"""From the user's graph to the placement problem and back: skew, several jobs, shared slots, subtasks."""
