"""What is kept: the workspace, its digests, versions of plans, samples and threshold tables."""
