"""Sluice's own scaling policy."""

from models.scaling.sluice.policy import Sluice
from models.scaling.sluice.settings import CapacityModel, SluiceSettings

__all__ = ["CapacityModel", "Sluice", "SluiceSettings"]
