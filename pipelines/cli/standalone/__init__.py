"""Commands that need no workspace: one model on files (capacity, scaling, placement), a recorded topic, skew of a stream."""
