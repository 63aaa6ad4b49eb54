"""What policies share when they decide: bottlenecks, what a decision changes, and rules for one operator at a time."""
