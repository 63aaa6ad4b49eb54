"""What TaskManagers have and what they cost."""
