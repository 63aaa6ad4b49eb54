"""How the kernel is compiled: once per machine, without the interpreter's lock, with IEEE division."""

from numba import njit

compiled = njit(cache=True, nogil=True, error_model="numpy")
