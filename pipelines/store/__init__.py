"""Storage: the workspace, digests, versions of plans, samples and threshold tables."""
