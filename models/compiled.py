"""How kernels are compiled: once per machine, without the interpreter's lock, with IEEE division."""

from collections.abc import Callable
from typing import TypeVar, cast

import numba

Kernel = TypeVar("Kernel", bound=Callable[..., object])


def compiled(kernel: Kernel) -> Kernel:
    """Compile to machine code that holds no interpreter lock, kept on disk between processes where possible.

    The code is kept beside the source or, where that folder is read-only, in the user's cache folder; where neither
    can be written, numba refuses to cache, and every process compiles anew (about a second a kernel).

    numba looks at the kernel's own file only. Where a compiled function of another module changes, touch the files of
    those that call it, or they go on with the old code.
    """
    try:
        return cast(Kernel, numba.njit(nogil=True, cache=True, error_model="numpy")(kernel))
    except RuntimeError:
        return cast(Kernel, numba.njit(nogil=True, error_model="numpy")(kernel))


def inlined(kernel: Kernel) -> Kernel:
    """Put the code into its callers: for what is called in every step with much to hand over."""
    return cast(Kernel, numba.njit(inline="always", nogil=True, error_model="numpy")(kernel))
