"""Capacity: what a budget of slots and memory can take, measured small and planned large (StreamBed)."""
