"""What is made of an evaluation's replays: a page to look at, runs in MLflow, and the policy that each job should have."""
