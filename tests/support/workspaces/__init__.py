"""Workspaces for tests: jobs with their runs, plans and samples, and what runs and shows them."""
