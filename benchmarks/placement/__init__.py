"""Placements on the simulator: time, proof, throughput, and what each engine contributes."""
