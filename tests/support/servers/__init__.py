"""Real servers that tests start as processes of this machine."""
