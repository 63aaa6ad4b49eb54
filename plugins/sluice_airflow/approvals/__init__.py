"""Tasks that ask a person: to review a capacity model, to apply a plan, and to let an autopilot act."""
