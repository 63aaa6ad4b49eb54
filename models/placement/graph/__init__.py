"""From what users write to what is placed, and back: skew, several jobs, shared slots, subtasks."""
