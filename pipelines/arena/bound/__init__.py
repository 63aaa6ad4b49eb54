"""A proved lower bound on the task-hours of every policy in a cell of the arena: docs/explanation/lower-bound.md."""
