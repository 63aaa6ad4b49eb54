"""Compilation of the search kernels."""

from collections.abc import Callable
from typing import TypeVar, cast

import numba

Kernel = TypeVar("Kernel", bound=Callable[..., object])


def compiled(kernel: Kernel) -> Kernel:
    """Compile to machine code that holds no interpreter lock, kept on disk between processes where possible.

    The code is kept beside the source or, where that folder is read-only, in the user's cache folder; where neither
    can be written, numba refuses to cache, and every process compiles anew (about a second a kernel).

    A kernel must not call a compiled function of another module: numba would not notice when that one changes.
    """
    try:
        return cast(Kernel, numba.njit(nogil=True, cache=True, error_model="numpy")(kernel))
    except RuntimeError:
        return cast(Kernel, numba.njit(nogil=True)(kernel))
