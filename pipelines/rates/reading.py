"""The error of a rate that cannot be read."""

from models.errors import SluiceError


class RateUnknown(SluiceError):
    """The rate could not be read this time; the next poll may succeed."""
