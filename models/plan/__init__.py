"""The plan: what to deploy, why, and what it was made from."""
