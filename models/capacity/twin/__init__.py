"""A job's twin: what a simulator needs of it, from what is seen of it while it is measured, and the sizes to simulate."""
