"""From a logical job to tasks: chains, expansion, what tasks share, and limits of what they write to or call."""
