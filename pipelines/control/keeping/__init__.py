"""What an autopilot keeps of a job beside its decisions: the right to act, its state, and which decisions are stored."""
