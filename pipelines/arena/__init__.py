"""The arena: policies replayed under workloads, ranked, and one chosen for each job."""
