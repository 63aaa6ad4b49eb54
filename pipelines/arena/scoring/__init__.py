"""Scores of policies: frontiers of task-hours and late records, their cost at equal attainment, and the verdict."""
