"""Justin: memory before tasks, and when it reconfigures."""
