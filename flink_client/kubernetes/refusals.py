"""Answers of the API server after which nothing was changed, and asking again does not help."""

from models.errors import SluiceError


class Conflict(SluiceError):
    """The resource was changed since it was read; nothing was written."""


class NotPermitted(SluiceError):
    """The credentials, their rights or the server's certificate do not allow it; nothing was changed."""
