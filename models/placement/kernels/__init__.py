"""Kernels that numba compiles; each formula is written once."""
