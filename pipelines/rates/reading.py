"""The error of a rate that cannot be read."""

from models.errors import SluiceError


class RateUnknown(SluiceError):
    """The rate could not be read now; it may be the next time."""
