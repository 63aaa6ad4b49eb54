"""Output for people at a terminal: plans and their differences as tables."""
