"""How the kernel is compiled: once per machine, without the interpreter's lock, with IEEE division."""

from numba import njit

compiled = njit(cache=True, nogil=True, error_model="numpy")

inlined = njit(inline="always", nogil=True, error_model="numpy")
"""For what is called for each operator in each step: a call would copy all that Plant and State hold."""
