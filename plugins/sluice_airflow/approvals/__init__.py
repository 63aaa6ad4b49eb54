"""Tasks that ask a person: to review a capacity model, and to apply a plan."""
