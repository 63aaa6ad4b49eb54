"""Entry points for spark-submit; each also runs as `python -m`."""
