"""What can go wrong on purpose. The command line turns each kind into its exit code."""


class SluiceError(Exception):
    """Base of every error that Sluice raises for its user; the message says what to do about it."""


class InvalidInput(SluiceError):
    """Unusable arguments or input: what must hold, what came, how to fix it (exit code 2)."""


class Infeasible(SluiceError):
    """The question is well put and has no answer, for example fewer slots than tasks (exit code 3)."""
