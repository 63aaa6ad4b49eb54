"""Sluice's own scaling policy."""

from models.scaling.sluice.policy import Sluice
from models.scaling.sluice.settings import ChampionModel, SluiceSettings

__all__ = ["ChampionModel", "Sluice", "SluiceSettings"]
