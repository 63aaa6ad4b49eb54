"""The arena: policies are replayed under workloads and ranked, and one is chosen for each job."""
