"""Commands for jobs that run: observing them, and letting a scaling policy act on them."""
