"""What numba compiles: each formula once."""
