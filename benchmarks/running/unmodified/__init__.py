"""Programs that were not written here, and run as they are: which artifacts they are, and how each is submitted."""
