"""The extras of the package: the modules that each brings, and what a command says when one is missing."""

from importlib.util import find_spec
from typing import Final

from models.errors import SluiceError

EXTRAS: Final = {
    "airflow": ("airflow",),
    "kubernetes": ("kubernetes",),
    "mlflow": ("matplotlib", "mlflow", "sklearn", "skops"),
    "spark": ("great_expectations", "py4j", "pyspark", "skopt"),
}
"""Modules by the smallest extra that has them; `spark` brings those of `mlflow`, and `airflow` those of both, too."""


class MissingExtra(SluiceError):
    """What was asked for needs packages that are not installed (exit code 4)."""

    def __init__(self, extra: str, module: str) -> None:
        super().__init__(
            f"this needs {module}, which is not installed; install it with: pip install 'sluice[{extra}]' "
            f"(in a checkout: make setup)"
        )


def require(*extras: str) -> None:
    """Refuse before hours of work what would fail after them.

    Raises:
        MissingExtra: a module of these extras is not installed.
    """
    for extra in extras:
        for module in EXTRAS[extra]:
            if not _installed(module):
                raise MissingExtra(extra, module)


def has(extra: str) -> bool:
    """Whether all modules of an extra are installed."""
    return all(_installed(module) for module in EXTRAS[extra])


def missing_extra(error: ModuleNotFoundError) -> MissingExtra | None:
    """The extra that has the module whose import failed; None where no extra has it, so that something else is wrong."""
    module = (error.name or "").partition(".")[0]
    for extra, modules in EXTRAS.items():
        if module in modules and not _installed(module):  # else a part of an installed package is missing
            return MissingExtra(extra, module)
    return None


def _installed(module: str) -> bool:
    return find_spec(module) is not None
