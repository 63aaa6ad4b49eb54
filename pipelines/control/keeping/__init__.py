"""What an autopilot keeps of a job: the right to act, its state, and the record of each round."""
