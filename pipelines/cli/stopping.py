"""How a command that a person stops says what it leaves."""


class Stopped(Exception):
    """The command was stopped by Ctrl-C; its message says what stays as it is, and how to resume."""
