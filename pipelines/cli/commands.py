"""Which module holds which command. Only that of the command called is imported, since the models take long to import."""

from collections.abc import Sequence
from importlib import import_module
from typing import Final

MODULES: Final = {
    "calibrate": ("calibrate",),
    "capacity": ("configure", "fit", "size"),
    "drift": ("drift",),
    "evaluate": ("evaluate",),
    "jobs": ("jobs", "clusters"),
    "models": ("models",),
    "placement": ("place", "tune"),
    "plan": ("plan", "replan"),
    "plans": ("plans",),
    "scale": ("scale",),
    "thresholds": ("thresholds",),
}
"""Module of this package -> the commands it registers on the app."""


def register(arguments: Sequence[str]) -> None:
    """Put the command that the arguments call on the app; all commands where they call none of them."""
    called = next((argument for argument in arguments if not argument.startswith("-")), None)
    modules = [module for module, commands in MODULES.items() if called in commands] or list(MODULES)
    for module in modules:
        import_module(f"pipelines.cli.{module}")
