"""Commands that make, show, compare and apply plans."""
