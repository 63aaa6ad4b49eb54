"""Errors that Sluice raises deliberately. The command line maps each kind to an exit code."""


class SluiceError(Exception):
    """Base of every error raised for the user; the message says how to fix it."""


class InvalidInput(SluiceError):
    """Unusable arguments or input (exit code 2); the message states the rule, the value and the fix."""


class Infeasible(SluiceError):
    """Valid input without a solution, for example fewer slots than tasks (exit code 3)."""
