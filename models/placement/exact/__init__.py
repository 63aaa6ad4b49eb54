"""Exact methods: patterns of a worker, the configuration LP over them, and the count of all plans."""
