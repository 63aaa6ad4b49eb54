"""What the policy learns of the job while it runs: capacity, memory, downtime, pace, and how many records were late."""
