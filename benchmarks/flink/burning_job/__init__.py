"""A job that burns CPU, whose slots are shared: its shapes, where it runs, what it costs, and runs of it."""
